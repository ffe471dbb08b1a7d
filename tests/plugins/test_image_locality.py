import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.plugins.image_locality import ImageLocality, ImageRule, normalized_name
from tests.releases.worlds import Json, a_node, a_pod

MB = 1 << 20
NAMES = ("web", "web:latest", "web:1", "reg:5000/web", "reg:5000/web:latest")

images = st.lists(
    st.fixed_dictionaries(
        {
            "names": st.lists(st.sampled_from(NAMES), max_size=2),
            "sizeBytes": st.sampled_from([0, 22 * MB, 23 * MB, 400 * MB, 999 * MB, 1000 * MB, 3000 * MB]),
        }
    ),
    max_size=3,
)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("reg:5000/web", "reg:5000/web:latest"),
        ("reg:5000/web:1", "reg:5000/web:1"),
        ("web@sha256:00", "web@sha256:00"),
        ("", ":latest"),
    ],
)
def test_names_get_a_tag(image: str, expected: str) -> None:
    assert normalized_name(image) == expected


def own_size(on_node: list[Json], wanted: list[str]) -> int:
    """1.10's scalar rule: the sizes of the images that the node calls as the pod does."""
    sizes = {name: image["sizeBytes"] for image in on_node for name in image["names"]}
    total = sum(sizes.get(name, 0) for name in wanted)
    if total < 23 * MB:
        return 0
    return 10 if total >= 1000 * MB else 10 * (total - 23 * MB) // (977 * MB) + 1


def spread(nodes: list[list[Json]], row: int, wanted: list[str]) -> int:
    """1.13's scalar rule: the size on the first node that has it, by how many nodes have it."""
    total = 0
    for name in map(normalized_name, wanted):
        having = [on_node for on_node in nodes if any(name in image["names"] for image in on_node)]
        if nodes[row] in having and any(name in image["names"] for image in nodes[row]):
            size = next(image["sizeBytes"] for image in having[0] if name in image["names"])
            total += int(float(size) * (len(having) / len(nodes)))
    return 10 * (min(max(total, 23 * MB), 1000 * MB) - 23 * MB) // (977 * MB)


@given(st.lists(images, min_size=1, max_size=4), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_scores_equal_the_scalar_rules(nodes: list[list[Json]], wanted: list[str]) -> None:
    cluster = Cluster()
    for i, on_node in enumerate(nodes):
        cluster.put_node(msgspec.convert(a_node(f"n{i}", images=on_node), Node))
    raw = a_pod()
    raw["spec"]["containers"] = [{"name": f"c{i}", "image": image} for i, image in enumerate(wanted)]
    pod = cluster.incoming(msgspec.convert(raw, Pod))
    old, new = ImageLocality(10, ImageRule.OWN_SIZE), ImageLocality(10)
    assert old.score(old.prepare(pod, cluster)).tolist() == [own_size(n, wanted) for n in nodes]
    expected = [spread(nodes, row, wanted) for row in range(len(nodes))]
    assert new.score(new.prepare(pod, cluster)).tolist() == expected


def test_nodes_that_went_do_not_count() -> None:
    cluster = Cluster()
    on_node = [{"names": ["web:latest"], "sizeBytes": 800 * MB}]
    for name in ("n1", "n2", "n3"):
        cluster.put_node(msgspec.convert(a_node(name, images=on_node if name != "n3" else []), Node))
    pod = cluster.incoming(msgspec.convert(a_pod(image="web"), Pod))
    plugin = ImageLocality(100)
    assert plugin.score(plugin.prepare(pod, cluster)).tolist() == [52, 52, 0]
    cluster.remove_node("n3")
    assert plugin.score(plugin.prepare(pod, cluster)).tolist()[:2] == [79, 79]
