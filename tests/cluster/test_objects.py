"""Objects other than nodes and pods, by kind and name."""

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.objects import Shelf
from berth.objects.base import ObjectMeta
from berth.objects.workloads import Service

names = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]))


@given(st.lists(st.tuples(st.booleans(), names), max_size=20))
def test_a_namespace_holds_its_objects_in_the_order_in_which_they_came(
    history: list[tuple[bool, tuple[str, str]]],
) -> None:
    shelf: Shelf[Service] = Shelf()
    for comes, (namespace, name) in history:
        if comes:
            shelf.put(Service(metadata=ObjectMeta(namespace=namespace, name=name)))
        elif shelf.get(namespace, name) is not None:
            shelf.remove(namespace, name)
    for namespace in ("a", "b", "c"):
        within = [item for item in shelf.all() if item.metadata.namespace == namespace]
        assert shelf.within(namespace) == within
