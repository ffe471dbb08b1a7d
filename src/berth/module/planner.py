"""What the module keeps from round to round: the cluster, the rules, the tie counter, the kept evaluations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from berth.cluster.cluster import Cluster, Incoming
from berth.module.changes import Change
from berth.module.forecast import LoadDelta
from berth.module.loads import ServiceName
from berth.module.plan import PlanColumns
from berth.module.profile import ServiceProfile
from berth.module.rounds import NO_REFUSALS, Progress, Round, Rules
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.ties import TieBreaker


@dataclass(slots=True)
class Planner:
    """Decides rounds on one cluster, one at a time.

    Attributes
    ----------
    profiles : dict of service name to profile
        What is known of what services use; may be exchanged between rounds.
    """

    cluster: Cluster
    rules: Rules
    ties: TieBreaker = field(default_factory=TieBreaker)
    profiles: Mapping[ServiceName, ServiceProfile] = field(default_factory=dict)
    _evaluations: Evaluations = field(init=False)
    _n_without_forecast: int = field(init=False)

    def __post_init__(self) -> None:
        self._evaluations = Evaluations(self.rules.addition, self.cluster)
        self._n_without_forecast = len(self.cluster.nodes)

    def set_forecast(self, forecast: LoadDelta) -> None:
        """Take in what the nodes' loads are about to do (one entry a row of the cluster)."""
        self.cluster.set_load_delta(forecast.delta)
        alive = self.cluster.nodes.alive
        self._n_without_forecast = int((alive & ~forecast.known).sum())

    def decide(
        self,
        changes: Sequence[Change],
        on_progress: Progress | None = None,
        refusals: Mapping[int, str] = NO_REFUSALS,
    ) -> Round:
        """Decide a round. The cluster then stands as if it were applied: apply it or undo it.

        A round that is broken off (``on_progress`` raises) is taken back.
        """
        counter = self.ties.counter
        decided = Round(self.cluster, self.rules, self.ties, self._evaluations, self.profiles)
        try:
            decided.decide(changes, on_progress, refusals)
        except BaseException:
            self.undo(decided, counter)
            raise
        return decided

    def undo(self, decided: Round, counter: int) -> None:
        """Take a round back, and the tie counter to what it was before."""
        decided.undo()
        self.ties.counter = counter

    def fits(self, pod: Incoming, row: int) -> bool:
        """Tell whether a pod passes all filters of additions on a row, as the cluster is now."""
        evaluation = self._evaluations.of(pod)
        evaluation.mend()
        return bool(evaluation.fits[row])

    def plan(self, number: int, decided: Round) -> PlanColumns:
        """Return the plan of a round."""
        names = self.cluster.nodes.names
        return PlanColumns(number, tuple(decided.planned), names, self._n_without_forecast)

    def dry_run(
        self,
        number: int,
        changes: Sequence[Change],
        on_progress: Progress | None = None,
        refusals: Mapping[int, str] = NO_REFUSALS,
    ) -> PlanColumns:
        """Plan a round and leave cluster and tie counter as they were."""
        counter, version = self.ties.counter, self.cluster.log.version
        decided = self.decide(changes, on_progress, refusals)
        plan = self.plan(number, decided)
        self.undo(decided, counter)
        self.cluster.log.restored(version)
        return plan
