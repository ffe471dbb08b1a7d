"""Nodes that somebody has reserved for pods beforehand, on a real control plane."""

import asyncio
from dataclasses import dataclass, field

from berth.cluster.cluster import Incoming
from berth.live.reservations import HOLD, Claim
from berth.sim.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.real import path_of
from tests.live.test_real_scheduler import a_pod, pods_of, scheduling, until_bound


@dataclass
class Reserved:
    """Holds pods whose names begin with h; the nodes of others are written down."""

    nodes: dict[str, str]
    uids: dict[str, str] = field(default_factory=dict)
    told: list[tuple[str, bool]] = field(default_factory=list)
    holding: bool = True

    def claim(self, pod: Incoming) -> Claim:
        self.uids[pod.uid] = pod.name
        if self.holding and pod.name.startswith("h"):
            return HOLD
        return self.nodes.pop(pod.name, None)

    def settled(self, uid: str, *, is_bound: bool) -> None:
        self.told.append((self.uids[uid], is_bound))


def test_who_has_a_reservation_goes_there_and_who_is_held_waits(control_plane: ControlPlane) -> None:
    asyncio.run(_reserved(control_plane))


async def _reserved(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        for i in (1, 2, 3):
            await client.post("/api/v1/nodes", real.node(i))
        # Filters would keep `claimed` off node 2, and nothing is there any more for `late`.
        reserved = Reserved({"claimed": "node-0002", "late": "node-0009"})
        async with scheduling(client, reservations=reserved) as scheduler:
            zone_b = {"zone": "b"}
            path = path_of("Pod", namespace)
            for name in ("held", "claimed", "late", "free"):
                await client.post(path, a_pod(name, nodeSelector=zone_b))
            nodes = await until_bound(client, namespace, "claimed", "late", "free")
            assert nodes == {"claimed": "node-0002", "late": "node-0001", "free": "node-0001"}
            await real.until(lambda: len(reserved.told) == 2, "both claims to be settled")
            assert sorted(reserved.told) == [("claimed", True), ("late", False)]
            held = (await pods_of(client, namespace))["held"]
            assert "nodeName" not in held["spec"]
            assert held["status"].get("conditions") is None  # nothing is wrong with it
            reserved.holding = False
            scheduler.release([held["metadata"]["uid"]])
            assert await until_bound(client, namespace, "held") == {"held": "node-0001"}
