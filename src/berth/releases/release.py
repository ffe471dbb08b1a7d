"""What a release is: its predicates and priorities by name, which of them are on, and how it words that nothing fits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.cluster.accounting import Accounting
from berth.framework.plugin import FilterPlugin, ScorePlugin
from berth.framework.profile import all_reasons


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Labels that must (or must not) be on a node."""

    labels: tuple[str, ...]
    presence: bool


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of a score function over utilization (0 to 100)."""

    utilization: int
    score: int


@dataclass(frozen=True, slots=True)
class RatioShape:
    """Arguments of RequestedToCapacityRatio: the function and the weights of resources."""

    points: tuple[ShapePoint, ...]
    resources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """What can be set of a release: arguments of plugins, and feature gates other than the defaults.

    Attributes
    ----------
    max_pd_volumes : int or None
        What ``KUBE_MAX_PD_VOLS`` says, read by `berth.plugins.volume_limits.read_max_volumes`.
    """

    hard_pod_affinity_weight: int = 1
    service_affinity_labels: tuple[str, ...] = ()
    service_anti_affinity_label: str | None = None
    labels_presence: LabelRule | None = None
    label_preference: LabelRule | None = None
    ratio: RatioShape | None = None
    max_pd_volumes: int | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)


FilterFactory = Callable[[Options], FilterPlugin[Any]]
ScoreFactory = Callable[[Options], ScorePlugin[Any] | None]
"""None where the options leave a priority out (one that needs an argument)."""


Names = Callable[[Options], frozenset[str]]
Weights = Callable[[Options], dict[str, int]]
Reasons = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """An algorithm provider: the predicates that are on, and the priorities with their weights."""

    filters: Names
    scores: Weights


def _none(options: Options) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Release:
    """A Kubernetes release.

    Attributes
    ----------
    filters : dict of name to factory
        Every predicate, in the order in which the release asks them.
    default_filters : callable
        The names of those that are on by default, with the options' feature gates.
    default_scores : callable
        Priority name to weight, likewise.
    gated_accounting : callable or None
        Makes the accounting where feature gates change it.
    scores_lone_node : bool
        Whether an error in scoring counts where a single node fits, which kube-scheduler takes unscored; the protocol
        of 1.36 scores it all the same.
    refuses_empty : bool
        Whether a cluster without nodes is an error, and not a cluster of which none fits.
    mandatory_filters : callable
        The names of those that are on whatever a Policy says.
    providers : dict of name to Provider
        The other sets that can be chosen by name.
    aliases : dict of name to name
        Old names of predicates.
    reported : callable
        Of a predicate's reasons against a node, those that the pod is told.
    checks_claims : bool
        Whether a pod is not looked at, whatever the nodes, unless its claims are there to stay (since 1.9).
    drops : FilterPlugin or None
        Nodes that fail it are left out before any predicate is asked: they count nowhere.
    asks_all : bool
        Whether a node is asked every predicate, also after one has failed.
    gated_accounting : callable or None
        Makes the accounting where feature gates change it.
    """

    name: str
    version: str
    maximum: int
    accounting: Accounting
    filters: Mapping[str, FilterFactory]
    scores: Mapping[str, ScoreFactory]
    default_filters: Callable[[Options], frozenset[str]]
    default_scores: Callable[[Options], dict[str, int]]
    mandatory_filters: Names = _none
    providers: Mapping[str, Provider] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    reported: Callable[[Reasons], Reasons] = all_reasons
    checks_claims: bool = False
    drops: FilterPlugin[Any] | None = None
    asks_all: bool = False
    gated_accounting: Callable[[Options], Accounting] | None = None
    refuses_empty: bool = True
    scores_lone_node: bool = False

    def accounting_for(self, options: Options) -> Accounting:
        """Return how pods are counted with the options' feature gates."""
        return self.gated_accounting(options) if self.gated_accounting else self.accounting
