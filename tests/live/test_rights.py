"""What is not allowed is told at once, in the words of a role."""

import asyncio
import json
from pathlib import Path

from aiohttp import web

from berth.live.rights import Right, in_words, missing_rights, scheduler_rights
from tests.live.fake_api import a_client, serving


def test_missing_rights_are_told_by_resource(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []

    async def review(request: web.Request) -> web.StreamResponse:
        wanted = json.loads(await request.read())["spec"]["resourceAttributes"]
        asked.append(wanted)
        allowed = wanted["verb"] != "watch" and wanted["subresource"] != "binding"
        return web.json_response({"status": {"allowed": allowed}})

    rights = [
        Right("list", "", "pods"),
        Right("watch", "", "pods"),
        Right("create", "", "pods/binding"),
        Right("watch", "apps", "replicasets"),
    ]

    async def ask() -> list[Right]:
        async with serving() as api, a_client(tmp_path, api.url) as client:
            api.script = [review] * len(rights)
            return await missing_rights(client, rights)

    missing = asyncio.run(ask())
    assert missing == rights[1:]
    assert {"verb": "create", "group": "", "resource": "pods", "subresource": "binding"} in asked
    assert in_words([*missing, Right("list", "apps", "replicasets")]).splitlines() == [
        "rights are missing, over all namespaces:",
        "may not watch pods",
        "may not create pods/binding",
        "may not watch, list replicasets (apps)",
    ]


def test_a_scheduler_asks_for_what_it_follows_and_writes() -> None:
    rights = set(scheduler_rights())
    assert Right("watch", "storage.k8s.io", "storageclasses") in rights
    assert Right("list", "policy", "poddisruptionbudgets") in rights
    assert Right("list", "", "nodes") in rights
    writes = {(r.verb, r.resource) for r in rights if r.verb not in ("list", "watch", "get")}
    assert writes == {
        ("create", "pods/binding"),
        ("patch", "pods/status"),
        ("delete", "pods"),
        ("patch", "persistentvolumes"),
        ("patch", "persistentvolumeclaims"),
        ("create", "events"),
        ("patch", "events"),
    }
