"""ServicePodsOnNodePriority: its scores, and how they move as pods leave."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.plugins.service_pods_on_node import PodsOnNode


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 5),
    st.sampled_from([10, 100]),
    st.data(),
)
def test_scores_are_shares_of_the_pods_before_each_removal(
    on_node: list[int], n_elsewhere: int, maximum: int, data: st.DataObject
) -> None:
    part = PodsOnNode(np.array(on_node), np.array([sum(on_node) + n_elsewhere]), maximum)
    while any(on_node):
        n_pods = sum(on_node) + n_elsewhere
        classes = part.class_of(np.arange(len(on_node)))
        assert part.table(classes, np.ones_like(classes)).tolist() == [
            [maximum * n // n_pods for n in on_node]
        ]
        row = data.draw(st.sampled_from([row for row, n in enumerate(on_node) if n]))
        part.place(row)
        on_node[row] -= 1
        if not on_node[row]:
            part.close(row)
