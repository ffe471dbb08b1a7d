import pytest

from berth.cluster.accounting import DEFAULT_MEMORY, DEFAULT_MILLI_CPU, LegacyAccounting, amounts, is_scalar
from berth.objects.base import ResourceList
from berth.objects.pods import Container, PodSpec, ResourceRequirements

MI = 1 << 20


def container(**requests: str) -> Container:
    names = {"gpu": "example.com/gpu", "huge": "hugepages-2Mi"}
    asked: ResourceList = {names.get(name, name): amount for name, amount in requests.items()}
    return Container(resources=ResourceRequirements(requests=asked))


def spec(*containers: Container, init: tuple[Container, ...] = ()) -> PodSpec:
    return PodSpec(containers=containers, init_containers=init)


def test_a_pod_asks_for_the_larger_of_the_sum_and_the_largest_init_container() -> None:
    pod = spec(
        container(cpu="500m", memory="1Mi"),
        container(cpu="1"),
        init=(container(cpu="2", gpu="1"), container(cpu="1", memory="3Mi", gpu="2")),
    )
    assert LegacyAccounting().asked(pod) == {"cpu": 2000, "memory": 3 * MI, "example.com/gpu": 2}


def test_a_pod_on_a_node_holds_the_sum_alone() -> None:
    pod = spec(container(cpu="500m", memory="1Mi"), container(cpu="1"), init=(container(cpu="2", gpu="1"),))
    assert LegacyAccounting().held(pod) == {"cpu": 1500, "memory": MI}


def test_nothing_of_an_init_container_is_not_asked_for() -> None:
    assert LegacyAccounting().asked(spec(container(), init=(container(gpu="0"),))) == {}
    assert LegacyAccounting().asked(spec(container(gpu="0"))) == {"example.com/gpu": 0}


def test_priorities_assume_something_of_silent_containers() -> None:
    pod = spec(container(), container(cpu="0", memory="0"), container(cpu="1m"), init=(container(cpu="9"),))
    assert LegacyAccounting().nonzero(pod) == (DEFAULT_MILLI_CPU + 1, 2 * DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("name", "scalar"),
    [
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-aws-ebs", True),
        ("kubernetes.io/batch", True),
        ("requests.example.com/gpu", False),
        ("cpu", False),
        ("storage", False),
    ],
)
def test_which_resources_count(name: str, scalar: bool) -> None:
    assert is_scalar(name) is scalar


def test_amounts_are_milli_cpu_and_units_rounded_up() -> None:
    listed: ResourceList = {
        "cpu": "0.0001",
        "memory": "1.5",
        "ephemeral-storage": 7,
        "pods": "110",
        "storage": "5Gi",
    }
    assert amounts(listed) == {"cpu": 1, "memory": 2, "ephemeral-storage": 7, "pods": 110}
