"""From settings to a planner, and from load sources to the forecast that it heeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.config.settings import Settings
from berth.module.forecast import (
    ForecastLimits,
    ForecastNodes,
    LoadDelta,
    ServicePods,
    forecast_delta,
    given_delta,
)
from berth.module.loads import ForecastTable, ServiceName
from berth.module.planner import Planner
from berth.module.profile import ServiceProfile
from berth.module.rounds import Rules
from berth.module.services import members
from berth.releases.module import MODULE_RELEASES, addition_profile
from berth.scheduling.ties import TieBreaker
from berth.sources.forecasts import ForecastSource, LoadSource

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)


def empty_cluster(settings: Settings) -> Cluster:
    """Return a cluster that counts pods as the module's release does."""
    return Cluster(MODULE_RELEASES[settings.module.release].accounting)


def make_planner(
    cluster: Cluster, settings: Settings, profiles: Mapping[ServiceName, ServiceProfile], counter: int = 0
) -> Planner:
    """Make a planner as the settings want it, on a cluster that was begun as `empty_cluster`.

    Raises
    ------
    InputError
        The release has no such priority.
    """
    module, release = settings.module, MODULE_RELEASES[settings.module.release]
    rules = Rules(
        addition=addition_profile(module.add_weights, module.hard_pod_affinity_weight, release),
        remove_weights=module.remove_weights,
        removal=release.removal,
        keep_pending=module.on_unschedulable == "pending",
        binding=release.binding,
        heeds_budgets=module.respect_pod_disruption_budgets,
    )
    return Planner(cluster, rules, TieBreaker(module.ties, module.seed, counter), profiles)


@dataclass(frozen=True, slots=True)
class LoadFeed:
    """Where forecasts and current loads come from; None where there are none."""

    forecasts: ForecastSource | None
    loads: LoadSource | None
    limits: ForecastLimits

    def delta(self, cluster: Cluster, now: datetime) -> LoadDelta:
        """Return what the nodes' loads are about to do, one entry a row of the cluster."""
        names = cluster.nodes.names
        if self.forecasts is None or self.loads is None:
            return given_delta({}, names)
        forecasts, loads = self.forecasts.forecasts(now), self.loads.loads(now)
        allocatable = cluster.nodes.allocatable
        nodes = ForecastNodes(names, allocatable.of(_CPU_ID), allocatable.of(_MEMORY_ID))
        return forecast_delta(forecasts, loads, nodes, now, self.limits, service_pods(cluster, forecasts))


def service_pods(cluster: Cluster, forecasts: ForecastTable) -> ServicePods | None:
    """Count the pods of the services that have per-pod forecasts, by node; None if there are no such services."""
    services = [
        (subject, service)
        for subject in forecasts.of_service_pods.subjects
        if isinstance(subject, ServiceName)
        and (service := cluster.objects.services.get(subject.namespace, subject.service)) is not None
    ]
    if not services:
        return None
    counts = np.zeros((len(services), cluster.nodes.n_rows), dtype=np.int64)
    for i, (_, service) in enumerate(services):
        rows = cluster.pods.node_row[members(cluster, service).own]
        counts[i] = np.bincount(rows[rows != NONE], minlength=cluster.nodes.n_rows)
    return ServicePods([name for name, _ in services], counts)
