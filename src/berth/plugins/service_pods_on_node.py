"""ServicePodsOnNodePriority: of the nodes that could lose a pod of a service, those that hold more of it are better."""

from typing import Any, NamedTuple

from berth.cluster.arrays import IdColumn, IntColumn


class PodsOnNode(NamedTuple):
    """The service's pods while some of them leave: a class is the number that a node holds.

    Attributes
    ----------
    on_node : int64[n]
        The service's pods on each node; they get fewer.
    in_all : int64[1]
        Its pods on all nodes and on none, likewise.
    maximum : int
        The score of a node that holds all of them.
    """

    on_node: IntColumn
    in_all: IntColumn
    maximum: int

    def class_of(self, row: Any) -> Any:
        """Return how many pods the node holds."""
        return self.on_node[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the score of each number of pods."""
        return (self.maximum * classes // self.in_all[0]).reshape(1, -1)

    def place(self, row: int) -> None:
        """A pod has left the node."""
        self.on_node[row] -= 1
        self.in_all[0] -= 1

    def close(self, row: int) -> None:
        """Nothing moves: the pods of a node that none may leave any more count all the same."""
