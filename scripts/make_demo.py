"""Write the demo cluster that berth ships, with its loads and profiles. The same bytes in every run.

python scripts/make_demo.py [FOLDER]
"""

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from demo_cluster import around, nodes, owners, workloads
from demo_cluster.names import Json, chance, digest
from demo_cluster.placing import Placement, members
from demo_cluster.pods import pod

SHIPPED = Path(__file__).parent.parent / "src" / "berth" / "demo"
PERIODS_MINUTES = (45, 50, 60, 75)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the demo cluster that berth ships.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    cluster = lines_of(cluster_objects())
    snapshot = f'{{"apiVersion":"v1","items":{cluster},"kind":"List","metadata":{{"resourceVersion":""}}}}\n'
    # Time and name stay out of the gzip header: they would differ from run to run.
    (folder / "cluster.json.gz").write_bytes(gzip.compress(snapshot.encode(), mtime=0))
    (folder / "loads.json").write_text(lines_of(map(load, nodes.machines())) + "\n")
    (folder / "profiles.json").write_text(lines_of(profiles()) + "\n")
    sys.stdout.write(f"{folder}: {len(snapshot):,} bytes of cluster\n")


def lines_of(objects: Iterable[Json | None]) -> str:
    """A compact JSON list, one object a line."""
    texts = (json.dumps(item, separators=(",", ":")) for item in objects if item)
    return "[\n" + ",\n".join(texts) + "\n]"


def cluster_objects() -> list[Json]:
    machines = nodes.machines()
    placement = Placement(machines)
    everyone = [member for workload in workloads.workloads() for member in members(workload)]
    placed = [(member, placement.place(member)) for member in everyone]
    pods_of: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for member, machine in placed:
        workload = member.workload
        made = pod(member, machine, owners.owner_references(member))
        pods_of[workload.namespace, workload.name].append(made)
    volumes = [around.claim_and_volume(m, machine) for m, machine in placed if m.workload.claim and machine]
    pods = [item for listed in pods_of.values() for item in listed]
    images = images_by_node(pods)
    workload_objects = [
        item
        for workload in workloads.workloads()
        for item in owners.owners(workload, pods_of[workload.namespace, workload.name])
    ]
    return [
        *around.namespaces(),
        *around.priority_classes(),
        *around.storage_classes(),
        *(nodes.node(machine, images[machine.name]) for machine in machines),
        *(nodes.csi_node(machine) for machine in machines),
        *(volume for _, volume in volumes),
        *(claim for claim, _ in volumes),
        *around.services(),
        *around.budgets(),
        *by_name(workload_objects),
        *by_name(pods),
    ]


def by_name(objects: list[Json]) -> list[Json]:
    """As kubectl lists them: by kind, namespace and name."""

    def key(item: Json) -> tuple[str, str, str]:
        return item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]

    return sorted(objects, key=key)


def images_by_node(pods: list[Json]) -> dict[str, list[Json]]:
    """What each node has pulled: the images of its pods, the largest first."""
    names: dict[str, set[str]] = defaultdict(set)
    for item in pods:
        for container in item["spec"]["containers"] + item["spec"].get("initContainers", []):
            names[item["spec"].get("nodeName", "")].add(container["image"])
    listed = {
        node: [
            {"names": [name], "sizeBytes": 20_000_000 + digest(name)[0] * 3_000_000} for name in sorted(found)
        ]
        for node, found in names.items()
    }
    for images in listed.values():
        images.sort(key=lambda image: -int(str(image["sizeBytes"])))
    return defaultdict(list, listed)


def load(machine: nodes.Machine) -> Json | None:
    """A node's load: a wave around a base. None of the lost node, whose load nobody measures.

    The waves are short, so that within the quarter of an hour that a forecast looks ahead some nodes' load
    visibly rises and others' falls, whenever the demo is started. [cores, bytes, minutes]
    """
    if machine.name == nodes.NOT_READY:
        return None
    base = 0.44 + 0.10 * chance("load", machine.name)
    swing = 0.22 + 0.18 * chance("swing", machine.name)
    period = PERIODS_MINUTES[digest("period", machine.name)[0] % len(PERIODS_MINUTES)]
    return {
        "node": machine.name,
        "cpu": round(base * machine.milli_cpu / 1000, 3),
        "cpuSwing": round(swing * machine.milli_cpu / 1000, 3),
        "memory": round(base * machine.memory),
        "memorySwing": round(0.8 * swing * machine.memory),
        "period": period,
        "phase": round(period * chance("phase", machine.name), 1),
    }


def profiles() -> list[Json]:
    return [
        {"namespace": namespace, "service": service, "intensity": intensity, "cpu": cpu, "memory": memory}
        for namespace, service, intensity, cpu, memory in workloads.PROFILES
    ]


if __name__ == "__main__":
    main()
