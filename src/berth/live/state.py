"""Applies what reflectors tell to a cluster. Knows no API server and no clock.

Events of one kind come in their order; between kinds there is none: a pod may come before its node, a claim before its
volume. Any event may come twice.
"""

import logging

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.errors import BerthError
from berth.live.events import Event
from berth.objects.nodes import Node
from berth.objects.pod_records import PodRecord

log = logging.getLogger(__name__)


class ClusterState:
    """A cluster as the API server has it, with the pods that Berth has decided and not yet seen bound.

    A pod that is decided stands in the cluster twice: without a node, as the API server has it, and assumed on its node, as
    `Cluster.assume` put it there. `expect` ties the two together. When the pod turns up on a node, whichever it is, or is
    gone, the assumed one leaves in the same step: its node is never counted twice nor not at all, and where both are alike,
    the cluster's log cancels them out.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._assumed: dict[str, int] = {}

    @property
    def n_assumed(self) -> int:
        """How many pods are decided and not yet seen bound."""
        return len(self._assumed)

    def expect(self, uid: str, assumed: int) -> None:
        """Note that the pod of this uid is about to be bound where ``assumed`` stands; say so before it is posted."""
        self._assumed[uid] = assumed

    def is_expected(self, uid: str) -> bool:
        """Tell whether a pod is decided and not yet seen bound."""
        return uid in self._assumed

    def assumed_of(self, uid: str) -> int | None:
        """Return the id under which a pod that is decided counts on its node."""
        return self._assumed.get(uid)

    def give_up(self, uid: str) -> bool:
        """Forget what was assumed of a pod, for its binding has failed; False if it is settled already."""
        assumed = self._assumed.pop(uid, None)
        if assumed is None:
            return False
        self.cluster.forget(assumed)
        return True

    def apply(self, event: Event) -> None:
        """Bring the cluster up to date, and note in the event whether that changed anything.

        An object that can't be read leaves the cluster as it was.
        """
        version = self.cluster.log.version
        try:
            if event.kind == "Pod":
                event.changed = self._apply_pod(event)
            elif event.kind == "Node":
                self._apply_node(event)
                event.changed = self.cluster.log.version != version
            else:
                event.changed = self._apply_other(event)
        except (BerthError, msgspec.DecodeError) as error:
            log.warning("%s %s/%s is left out: %s", event.kind, event.namespace, event.name, error)

    def _apply_node(self, event: Event) -> None:
        if event.type != "DELETED":
            if isinstance(event.item, Node):
                self.cluster.put_node(event.item)
        elif self.cluster.nodes.row(event.name) != NONE:
            self.cluster.remove_node(event.name)

    def _apply_other(self, event: Event) -> bool:
        shelf = self.cluster.objects.by_kind()[event.kind]
        event.old = shelf.get(event.namespace, event.name)
        if event.type == "DELETED":
            if event.old is not None:
                self.cluster.remove(event.old)
            return event.old is not None
        if not isinstance(event.item, NamedObject) or event.item == event.old:
            return False
        self.cluster.put(event.item)
        return True

    # -- pods --------------------------------------------------------------------------------------------------------

    def _apply_pod(self, event: Event) -> bool:
        cluster = self.cluster
        namespace_id = cluster.namespaces.id(event.namespace)
        pod = cluster.pods.find(namespace_id, event.name)
        if event.type == "DELETED":
            self.give_up(event.uid)
            if pod == NONE or cluster.pods.uids[pod] != event.uid:
                return False
            event.before = cluster.pods.get(pod)
            cluster.remove_pod(pod)
            return True
        if not isinstance(event.item, PodRecord):
            return False
        record, node_name = event.item, event.item.spec.node_name
        values = cluster.values_of(record)
        record.spec.node_name = node_name  # which was taken out: others read it, too
        if node_name or values.is_finished:
            self.give_up(event.uid)
        event.values = values
        if pod == NONE:
            cluster.add_pod(values)
            return True
        event.before = cluster.pods.get(pod)
        return cluster.update_pod(pod, values)
