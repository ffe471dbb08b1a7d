"""The wall: posts a binding and an event for each pod, with a watch open, and decides nothing. A program of its own.

``python -m berth.live.bench.bind_loop KUBECONFIG NAMESPACE PODS NODES``; the pods and nodes are there. When it is through
it waits to be ended, so that what it took can be read.
"""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from berth.live.bench.world import node_name, pod_name
from berth.live.credentials import Credentials

_AT_ONCE = 32
_NAME = "bind-loop"


async def run(kubeconfig: Path, namespace: str, n_pods: int, n_nodes: int) -> None:
    """Bind the pods in turn."""
    credentials = Credentials(kubeconfig)
    await credentials.load()
    headers = {"Authorization": credentials.authorization, "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(ssl=credentials.tls, limit=_AT_ONCE + 4)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        credentials.url, connector=connector, headers=headers, timeout=timeout
    ) as session:
        watching = asyncio.Event()
        numbers = iter(range(n_pods))

        async def watch() -> None:
            while True:
                async with session.get("/api/v1/pods?watch=1&allowWatchBookmarks=true") as response:
                    async for _ in response.content.iter_any():
                        watching.set()

        async def work() -> None:
            await watching.wait()
            for i in numbers:
                name = pod_name(i)
                pod = f"/api/v1/namespaces/{namespace}/pods/{name}"
                await _post(session, f"{pod}/binding", _binding(name, node_name(i % n_nodes)))
                path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
                await _post(session, path, _event(namespace, name))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch())  # without an end
            for _ in range(_AT_ONCE):
                tasks.create_task(work())


async def _post(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    async with session.post(path, data=json.dumps(body)) as response:
        answer = await response.read()
        if response.status >= 300:
            raise RuntimeError(f"{path}: {response.status} {answer.decode('utf-8', 'replace')}")


def _binding(name: str, node: str) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def _event(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{time.time_ns():x}", "namespace": namespace},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": _NAME,
        "reportingInstance": _NAME,
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "Successfully assigned",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": name},
    }


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
