"""Scenarios: a cluster, requests and the rules of one round in one JSON object, and the answer to it.

What a scenario says is all there is: no settings, no clock, nothing is kept from one to the next.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from berth.cluster.accounting import Accounting
from berth.cluster.cluster import Cluster
from berth.cluster.objects import CLUSTER_SCOPED, NamedObject
from berth.config.mistakes import known_name
from berth.config.priorities import ADD_WEIGHT_GROUPS, weights_of_groups
from berth.errors import BerthError
from berth.module.changes import BadRequestError, Change, FieldError, parse_pod_list
from berth.module.forecast import given_delta
from berth.module.loads import ServiceName
from berth.module.planner import Planner
from berth.module.profile import ServiceProfile
from berth.module.rounds import Rules
from berth.module.services import check_change
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.objects.workloads import (
    Deployment,
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from berth.releases.module import MODULE_RELEASES, ModuleRelease, addition_profile
from berth.scheduling.ties import TieBreaker, TieRule
from berth.sources.mistakes import Mistakes
from berth.sources.profiles import profiles_of
from berth.sources.rows import Row

DECISION_KEYS = (
    "operation", "namespace", "service", "node", "pod", "score", "scores", "feasible", "reason",
)  # fmt: skip
"""What an answer tells of each decision."""

_LARGEST_WEIGHT = 2**31 - 1


class ScenarioCluster(msgspec.Struct, rename="camel"):
    """The objects by kind; lists of other kinds are passed over."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()

    def others(self) -> Sequence[NamedObject]:
        """Return all that are neither nodes nor pods."""
        return (
            *self.namespaces, *self.services, *self.deployments, *self.replica_sets, *self.stateful_sets,
            *self.replication_controllers, *self.storage_classes, *self.persistent_volumes,
            *self.persistent_volume_claims, *self.csi_nodes,
        )  # fmt: skip


class Scenario(msgspec.Struct):
    """One round on a cluster of its own.

    Attributes
    ----------
    requests : list
        Entries of a ``podList``, each a request of its own, in the order of arrival.
    weights : dict of str to int
        By the numbers ``1`` to ``5`` that the priorities share.
    forecast : dict of node name to float, optional
        How much of each node's allocatable its load is about to gain.
    release : str
        Whose arithmetic holds.
    """

    snapshot: ScenarioCluster
    requests: list[Any]
    id: Any = None
    ties: TieRule = "round-robin"
    weights: dict[str, int] = {}
    forecast: dict[str, float] = {}
    profiles: list[dict[str, Any]] = []
    release: Literal["1.13", "1.36"] = "1.13"


def answer_scenario(line: bytes) -> dict[str, Any]:
    """Decide a scenario's round; return its id and its decisions.

    Raises
    ------
    msgspec.DecodeError
        The line is no scenario.
    BerthError
        It is not one that can be decided; the message holds every mistake that was found.
    """
    scenario = decode(line, Scenario)
    mistakes: list[str] = []
    release = MODULE_RELEASES[scenario.release]
    rules = _rules(release, scenario.weights, mistakes)
    profiles = _profiles(scenario.profiles, mistakes)
    changes = _changes(scenario.requests, mistakes)
    if mistakes:
        raise BerthError("; ".join(mistakes))
    cluster = cluster_of(scenario.snapshot, release.accounting)
    for index, change in enumerate(changes):
        try:
            check_change(cluster, change)
        except BerthError as error:
            mistakes.append(f"requests[{index}]: {error}")
    if mistakes:
        raise BerthError("; ".join(mistakes))
    planner = Planner(cluster, rules, TieBreaker(scenario.ties), profiles)
    planner.set_forecast(given_delta(scenario.forecast, cluster.nodes.names))
    decided = planner.decide(changes)
    rows = [
        {key: getattr(decision, key) for key in DECISION_KEYS}
        for decision in planner.plan(1, decided).decisions
    ]
    return {"id": scenario.id, "decisions": rows}


def cluster_of(snapshot: ScenarioCluster, accounting: Accounting) -> Cluster:
    """Put a scenario's objects into a cluster.

    Raises
    ------
    BerthError
        With all objects that it can't hold.
    """
    cluster, mistakes = Cluster(accounting), []
    for node in snapshot.nodes:
        try:
            cluster.put_node(node)
        except BerthError as error:
            mistakes.append(f"node {node.metadata.name}: {error}")
    for item in snapshot.others():
        cluster.put(_in_namespace(item))
    for pod in snapshot.pods:
        try:
            cluster.put_pod(pod)
        except BerthError as error:
            mistakes.append(f"pod {pod.metadata.namespace or 'default'}/{pod.metadata.name}: {error}")
    if mistakes:
        raise BerthError("; ".join(mistakes))
    return cluster


def _in_namespace(item: NamedObject) -> NamedObject:
    if item.metadata.namespace or type(item).__name__ in CLUSTER_SCOPED:
        return item
    meta = msgspec.structs.replace(item.metadata, namespace="default")
    return msgspec.structs.replace(item, metadata=meta)


def _rules(release: ModuleRelease, weights: Mapping[str, int], mistakes: list[str]) -> Rules:
    for number, weight in weights.items():
        if number not in ADD_WEIGHT_GROUPS:
            mistakes.append(f"weights.{number}: expected {known_name(number, ADD_WEIGHT_GROUPS, 'number')}")
        if not 0 <= weight <= _LARGEST_WEIGHT:
            mistakes.append(f"weights.{number}: {weight} is not a whole number from 0 to {_LARGEST_WEIGHT}")
    add, remove = weights_of_groups(dict(weights))
    addition = addition_profile(add, module=release)
    return Rules(addition, remove, removal=release.removal, binding=release.binding)


def _profiles(rows: list[dict[str, Any]], mistakes: list[str]) -> dict[ServiceName, ServiceProfile]:
    found = Mistakes("profiles")
    profiles = profiles_of((Row(f"[{index}]", row) for index, row in enumerate(rows)), found)
    mistakes += found.lines()
    return profiles


def _changes(entries: list[Any], mistakes: list[str]) -> list[Change]:
    changes: list[Change] = []
    for index, entry in enumerate(entries):
        try:
            changes += parse_pod_list({"podList": [entry]}, request=str(index))
        except BadRequestError as error:
            mistakes += [str(_at(index, mistake)) for mistake in error.errors]
    return changes


def _at(index: int, mistake: FieldError) -> FieldError:
    path = mistake.path.replace("podList[0]", f"requests[{index}]", 1)
    return FieldError(path, mistake.value, mistake.expected)
