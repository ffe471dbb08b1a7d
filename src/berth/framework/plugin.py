"""The protocol of plugins.

A plugin answers for many rows at once. It is prepared once for a shape of pods; the state that it returns then is handed
back to every other method, and is brought up to date (`Plugin.mend`) as pods come and go.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.changes import EVERYTHING, Hint, Wakes, helps_always
from berth.framework.counted import Counted
from berth.framework.normalize import Scaling, scale_to_maximum
from berth.framework.rules import Rule

S = TypeVar("S")

FITS = 0
"""The code of a row that passes a filter. Positive codes are reasons, negative ones errors; both are the plugin's own."""


class BatchKind(Enum):
    """How a plugin's answers move while pods of one shape are placed, one after another."""

    LOCAL = "hangs on the row's own placements alone"
    CONSTANT = "does not move"
    CLASSED = "hangs on counts per class of rows: `ScorePlugin.classes`, or `Plugin.counted`"
    FIRST = "may move anywhere with the next pod: it is placed alone, and the plugin is asked again"
    SERIAL = "may move anywhere: the shape is placed one at a time"


class Finality(Enum):
    """What comes after a filter has turned a pod away."""

    FINAL = "nothing: no other filter is asked (upstream's UnschedulableAndUnresolvable)"
    OPEN = "the filters after it may still turn the pod away; the last one's reasons count (Unschedulable)"
    ERROR = "nothing: the decision fails"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A filter turns the pod away before any node is looked at; of an error, ``reasons`` is its text."""

    reasons: tuple[str, ...]
    finality: Finality = Finality.FINAL


SHUT = -(1 << 40)
"""In place of a class's score: its rows are not feasible for now."""


class Classed(Protocol):
    """Scores, and maybe verdicts, that hang on counts per class of rows; made for one batch and moved along with it.

    The kernel compiles these methods, so an implementation is a ``NamedTuple`` of arrays and numbers, and what its methods
    call is compiled too (`berth.scheduling.batch_kernels.PARTS`). A placement may change the class of its own row alone.
    """

    def class_of(self, row: Any) -> Any:
        """Return the class of a row, or of many; any int64 that is not negative."""

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the normalized scores of classes (int64[n_scores, n]), the first `SHUT` where the class is not feasible.

        Parameters
        ----------
        classes : int64[n]
            All that have a row on which the pod may fit, each once.
        sizes : int32[n]
            How many such rows they have.
        """

    def place(self, row: int) -> None:
        """A pod of the shape was placed on the row."""

    def close(self, row: int) -> None:
        """The row is no longer feasible, whatever becomes of its class."""


@dataclass(frozen=True, slots=True)
class SpreadCounts:
    """Pods of one kind by node and by one domain, for a score that wants them spread over either or both.

    Attributes
    ----------
    per_row : int64[n_rows]
        The counted pods on each node.
    domain : int32[n_rows]
        Each row's domain, 0 where it has none; None where only nodes count.
    eligible : bool[n_rows]
        The rows whose pods count for their domain.
    host_skew, domain_skew : int
        The allowed skew; 0 where the constraint is absent.
    counts : callable
        Tells whether a pod of a shape counts.
    """

    per_row: IntColumn
    domain: IdColumn | None
    eligible: NDArray[np.bool_]
    host_skew: int
    domain_skew: int
    maximum: int
    counts: Callable[[Incoming], bool]


class Plugin(Generic[S]):
    """What filters and scores have in common.

    Attributes
    ----------
    reads_pods : bool
        Whether answers hang on the pods that are there, and not only on nodes and other objects.
    """

    name: ClassVar[str]
    reads_pods: ClassVar[bool] = True

    def prepare(self, pod: Incoming, cluster: Cluster) -> S:
        """Gather what the plugin needs to know of the pod and the cluster."""
        raise NotImplementedError

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        """Tell at a glance whether there is nothing to say of the pod, as the cluster is.

        Such a plugin need not be prepared: every row passes, or scores 0, normalized too, and nothing is rejected or an
        error; nor do pods of the same shape change that. Asked anew before every decision, so no more than a few look-ups.
        """
        return False

    def mend(self, state: S, changes: Changes) -> Rows | None:
        """Bring a state up to date; return the rows whose answers may differ now, None to be prepared anew.

        By default the touched rows, which is right for a plugin that looks at nothing but the row itself.
        """
        return changes.rows

    def is_idle(self, state: S) -> bool:
        """Tell whether there is nothing to say of the shape: every row passes; every row scores 0, normalized too.

        Asked anew whenever the state was mended or prepared; an idle plugin is not asked for columns.
        """
        return False

    def batch(self, state: S, feasible: NDArray[np.bool_]) -> BatchKind:
        """Tell how the answers move while pods of the state's shape are placed."""
        return BatchKind.SERIAL

    def counted(self, state: S) -> Counted | None:
        """Return, of a plugin that is CLASSED, the counts per topology domain that its answers hang on, if they do."""
        return None

    def moved_by(self, state: S, other: Incoming) -> bool:
        """Tell whether a pod of another shape may move answers that do not move with pods of the state's own."""
        return self.reads_pods

    def resource_rule(self, state: S) -> Rule | None:
        """Return, of a plugin that is LOCAL, all that its answers hang on as a rule of resources, if they do.

        Scores that are rules are not normalized, and it is the touched rows alone that change (`mend`).
        """
        return None

    def spread(self, state: S) -> "SpreadCounts | None":
        """Return, of a score, the counts that it hangs on, if it is nothing but PodTopologySpread's rule over them."""
        return None


class FilterPlugin(Plugin[S]):
    """A predicate: which nodes can take the pod?

    Attributes
    ----------
    wakes_on : dict of Resource to Action
        The changes after which a pod that the plugin turned away is worth another look.
    """

    wakes_on: ClassVar[Wakes] = EVERYTHING

    def reject(self, state: S) -> Rejection | None:
        """Return why no node can take the pod, whichever it is; None, as before 1.36, where nodes have to be asked."""
        return None

    def restrict(self, state: S) -> frozenset[str] | None:
        """Return the names of the only nodes that are to be asked, by any filter; None for all."""
        return None

    def filter(self, state: S, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        """Return a code for each row, `FITS` where the pod fits.

        Parameters
        ----------
        placed : int or int64[n]
            Judge as if so many more pods of the shape were on the row; only asked of plugins that are LOCAL.
        """
        raise NotImplementedError

    def passes(self, state: S, rows: Rows = ALL_ROWS) -> NDArray[np.bool_] | None:
        """Tell which rows pass without working out codes (bool[n], not to be written to); None where codes are needed.

        A filter that can tell knows no errors: its codes are never negative.
        """
        return None

    def parts_of(self, state: S) -> Iterable[tuple["FilterPlugin[Any]", Any]]:
        """Iterate over the filters, with their states, that all have to be passed: itself, unless it is made of others."""
        return ((self, state),)

    def may_fit(self, state: S, codes: IntColumn) -> NDArray[np.bool_]:
        """Tell which rows may pass while pods of the shape are placed (bool[n_rows]), from the codes of all rows."""
        return codes == FITS

    def beyond_help(self, state: S, codes: IntColumn, rows: Rows = ALL_ROWS) -> BoolColumn:
        """Tell which of the rows that fail would do so without any of their pods (UnschedulableAndUnresolvable of 1.36).

        Preemption leaves them out. By default all that fail a filter that does not look at pods, and no others.

        Parameters
        ----------
        codes : int64[n]
            What `filter` says of the rows.
        """
        return np.zeros(len(codes), dtype=np.bool_) if self.reads_pods else codes != FITS

    def reasons(self, state: S, code: int) -> tuple[str, ...]:
        """Return the reasons that a code stands for, in the release's words; of an error, its text."""
        raise NotImplementedError

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        """Return what tells of a change that the plugin wakes on whether it may help a pod that it turned away.

        It is made once for the pods of a shape and then asked of many changes; it may say yes too often, never no
        where the answer would be another now. Upstream's ``QueueingHintFn``.
        """
        return helps_always


class ScorePlugin(Plugin[S]):
    """A priority: how good is a node for the pod?"""

    def error(self, state: S) -> str | None:
        """Return why the pod can't be scored at all, if so: the decision then fails with that text."""
        return None

    def score(self, state: S, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        """Return a raw score for each row; ``placed`` as for filters."""
        raise NotImplementedError

    def normalize(self, state: S, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        """Turn the raw scores of the feasible rows into scores from 0 to the release's maximum."""
        scaling = self.scaling
        return scores if scaling is None else scale_to_maximum(scores, scaling)

    @property
    def scaling(self) -> Scaling | None:
        """How `normalize` scales, if that is all it does: compiled loops then do it in its place."""
        return None

    def classes(self, state: S, feasible: NDArray[np.bool_]) -> Classed | None:
        """Return, of a plugin that is CLASSED, its own classes for a batch in which no other one is, if it has any."""
        return None
