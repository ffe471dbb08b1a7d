from datetime import UTC, datetime

import pytest

from berth.cluster.cluster import Cluster
from berth.objects.base import ObjectMeta
from berth.objects.pods import PersistentVolumeClaimVolume, Pod, PodSpec, Volume
from berth.objects.storage import PersistentVolumeClaim
from berth.scheduling.basic_checks import refuse_claims

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_pod(*claims: str) -> Pod:
    volumes = tuple(
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=name))
        for name in claims
    )
    return Pod(metadata=ObjectMeta(name="p", namespace="shop"), spec=PodSpec(volumes=volumes))


def a_claim(name: str, namespace: str = "shop", deleted: datetime | None = None) -> PersistentVolumeClaim:
    meta = ObjectMeta(name=name, namespace=namespace, deletion_timestamp=deleted)
    return PersistentVolumeClaim(metadata=meta)


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ((), None),
        (("good",), None),
        (("good", "leaving", "gone"), 'persistentvolumeclaim "leaving" is being deleted'),
        (("elsewhere",), 'persistentvolumeclaim "elsewhere" not found'),
    ],
)
def test_claims_must_be_there_to_stay(claims: tuple[str, ...], text: str | None) -> None:
    cluster = Cluster()
    cluster.put(a_claim("good"))
    cluster.put(a_claim("leaving", deleted=NOON))
    cluster.put(a_claim("elsewhere", namespace="other"))
    assert refuse_claims(cluster.incoming(a_pod(*claims)), cluster) == text
