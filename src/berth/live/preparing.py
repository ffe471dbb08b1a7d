"""What has to be done for a pod between its decision and its binding (upstream's PreBind)."""

from typing import Protocol

from berth.cluster.cluster import Cluster, Incoming
from berth.errors import BerthError


class PrepareError(BerthError):
    """A pod can't be made ready for its node; the message is for the pod's event."""


class Preparation(Protocol):
    """One of the things that may have to be done."""

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod needs it; asked of every pod, so it has to be quick."""

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Make a pod ready for a node; it may take its time.

        Raises
        ------
        PrepareError
            It can't be done; nothing is left half done.
        """


class UnboundClaims:
    """Refuses pods with claims that have no volume yet: to bind these is not Berth's yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod has claims."""
        return bool(pod.info.spec.volumes) and any(self._claims(pod))

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Refuse a pod one of whose claims is not bound."""
        claims = self._cluster.objects.persistent_volume_claims
        for name in self._claims(pod):
            claim = claims.get(pod.namespace, name)
            if claim is None or not claim.spec.volume_name:
                raise PrepareError(
                    f'claim "{name}" has no volume, and binding volumes on first use (WaitForFirstConsumer) '
                    "is not supported yet"
                )

    def _claims(self, pod: Incoming) -> list[str]:
        spec = pod.info.spec
        named = [v.persistent_volume_claim.claim_name for v in spec.volumes if v.persistent_volume_claim]
        return named + [f"{pod.name}-{v.name}" for v in spec.volumes if v.ephemeral is not None]
