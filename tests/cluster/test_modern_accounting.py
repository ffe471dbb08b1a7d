"""What pods ask for and hold in 1.36, by hand and against the moments of a pod's life."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.objects.base import ResourceList
from berth.objects.decode import decode
from berth.objects.pod_records import decode_record
from berth.objects.pods import Container, ContainerResizing, Pod, PodSpec, Resizing, ResourceRequirements

MI = 1 << 20
DEFAULT = (100, 200 * MI)
ACCOUNTING = ModernAccounting()


def container(name: str = "c", *, sidecar: bool = False, **requests: str) -> Container:
    asked: ResourceList = dict(requests)
    return Container(
        name=name,
        resources=ResourceRequirements(requests=asked),
        restart_policy="Always" if sidecar else "",
    )


def test_an_init_container_needs_the_sidecars_before_it_but_not_those_after() -> None:
    init = (container(cpu="5"), container(cpu="2", sidecar=True), container(cpu="3"))
    spec = PodSpec(containers=(container(cpu="1"),), init_containers=init)
    assert ACCOUNTING.asked(spec) == {"cpu": 5000}
    init = (container(cpu="2", sidecar=True), container(cpu="5"), container(cpu="3"))
    assert ACCOUNTING.asked(PodSpec(containers=(container(cpu="1"),), init_containers=init)) == {"cpu": 7000}


amounts = st.one_of(st.none(), st.integers(0, 5))


@given(st.lists(amounts, max_size=3), st.lists(st.tuples(amounts, st.booleans()), max_size=5), amounts)
def test_the_most_at_any_moment(
    main: list[int | None], init: list[tuple[int | None, bool]], overhead: int | None
) -> None:
    def made(amount: int | None, sidecar: bool = False) -> Container:
        return container(sidecar=sidecar, **({} if amount is None else {"cpu": str(amount)}))

    spec = PodSpec(
        containers=tuple(map(made, main)),
        init_containers=tuple(made(*one) for one in init),
        overhead={} if overhead is None else {"cpu": overhead},
    )
    running, moments = 0, []
    for amount, sidecar in init:
        moments.append(running + (amount or 0))
        running += (amount or 0) if sidecar else 0
    most = max([*moments, running + sum(amount or 0 for amount in main)]) + (overhead or 0)
    assert ACCOUNTING.asked(spec).get("cpu", 0) == ACCOUNTING.held(spec).get("cpu", 0) == 1000 * most


@given(st.lists(st.sampled_from(["0.5m", "1n", "1500u", "0.3", "2", "100m"]), max_size=6))
def test_amounts_are_rounded_up_once(texts: list[str]) -> None:
    worth = {"0.5m": "0.0005", "1n": "0.000000001", "1500u": "0.0015", "0.3": "0.3", "2": "2", "100m": "0.1"}
    spec = PodSpec(containers=tuple(container(cpu=text, memory=text) for text in texts))
    total = sum((Fraction(worth[text]) for text in texts), Fraction(0))
    asked = ACCOUNTING.asked(spec)
    assert asked.get("cpu", 0) == -(-total * 1000 // 1)
    assert asked.get("memory", 0) == -(-total // 1)


def test_the_pods_own_resources_replace_those_of_containers() -> None:
    own = ResourceRequirements(requests={"cpu": "3", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1"})
    spec = PodSpec(containers=(container(cpu="1", memory="5Mi"),), resources=own, overhead={"cpu": "250m"})
    counted = {"cpu": 3250, "memory": 5 * MI, "hugepages-2Mi": 4 * MI}
    assert ACCOUNTING.asked(spec) == ACCOUNTING.held(spec) == counted
    assert ModernAccounting(pod_level=False).asked(spec) == {"cpu": 1250, "memory": 5 * MI}
    # NodeResourcesFit's scores look at containers alone.
    assert ACCOUNTING.scored(spec) == {"cpu": 1250, "memory": 5 * MI}


def test_defaults_of_silent_containers() -> None:
    silent = PodSpec(containers=(container(), container(cpu="1")), init_containers=(container(),))
    assert ACCOUNTING.nonzero(silent) == (1100, 2 * DEFAULT[1])
    # The pod says how much cpu: defaults are for memory alone, of which nobody says anything.
    spec = msgspec.structs.replace(silent, resources=ResourceRequirements(requests={"cpu": "2"}))
    assert ACCOUNTING.nonzero(spec) == (2000, 2 * DEFAULT[1])
    assert ACCOUNTING.scored(spec) == {"cpu": 1100, "memory": 2 * DEFAULT[1]}


def resized(*, infeasible: bool = False, sidecar: bool = False) -> PodSpec:
    actual = ResourceRequirements(requests={"cpu": "2"})
    one = ContainerResizing(name="c", resources=actual, allocated_resources={"cpu": "1", "memory": "3Mi"})
    spec = PodSpec(resizing=Resizing(containers=(one,), infeasible=infeasible))
    whom = (container(cpu="4", sidecar=sidecar),)
    return msgspec.structs.replace(spec, **({"init_containers": whom} if sidecar else {"containers": whom}))


def test_a_pod_that_is_resized_holds_the_most_of_what_is_wanted_allocated_and_there() -> None:
    assert ACCOUNTING.held(resized()) == {"cpu": 4000, "memory": 3 * MI}
    assert ACCOUNTING.held(resized(sidecar=True)) == {"cpu": 4000, "memory": 3 * MI}
    assert ACCOUNTING.asked(resized()) == {"cpu": 4000}
    assert ACCOUNTING.held(resized(infeasible=True)) == {"cpu": 2000, "memory": 3 * MI}


def raw(status: str, cpu: str = "1") -> bytes:
    spec = f'{{"nodeName":"n","containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}]}}'
    return f'{{"metadata":{{"name":"p"}},"spec":{spec},"status":{status}}}'.encode()


SAME = '{"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"1"}},"allocatedResources":{"cpu":"1"}}]}'
MORE = '{"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}'


@pytest.mark.parametrize(
    ("status", "alike", "held"), [("{}", True, 1000), (SAME, True, 1000), (MORE, False, 2000)]
)
def test_a_status_makes_a_spec_of_its_own_only_where_it_says_otherwise(
    status: str, alike: bool, held: int
) -> None:
    cluster = Cluster(ACCOUNTING)
    plain = cluster.values_of(decode_record(raw("{}"))).spec_id
    spec_id = cluster.values_of(decode_record(raw(status))).spec_id
    assert (spec_id == plain) is alike
    assert cluster.specs[spec_id].held[0] == held
    assert cluster.incoming(decode(raw(status), Pod)).spec_id == spec_id
    # Releases that can't resize do not look.
    old = Cluster()
    assert len({old.values_of(decode_record(raw(text))).spec_id for text in ("{}", status)}) == 1
