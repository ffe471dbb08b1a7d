"""What only 1.36 has, put into random cases: drawn where a feature of MODERN is named."""

from typing import Any

MODERN = (
    "overhead",
    "pod_resources",
    "resized",
    "sidecars",
    "small_requests",
    "declared_features",
    "image_volumes",
    "gated",
    "many_taints",
    "node_names",
    "weighted_resources",
    "bad_terms",
    "gates",
)
NODE_FEATURES = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "ExtendWebSocketsToKubelet",
    "SomethingElse",
)
DEPENDENT_GATES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
"""Gates that can only be on where NodeDeclaredFeatures is."""
IMAGES = ("registry.local/web:1", "registry.local/api:2", "registry.local/cache", "registry.local/side")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINT_VALUES = ("", "1", "10", "-5", "007", "x")


def modernize(draw: Any, case: dict) -> None:
    """Add what the features say; ``draw`` is the `Cases` that drew the case."""
    for node in case["nodes"]:
        _node(draw, node)
    for pod in (*case["pods"], case["pod"]):
        _spec(draw, pod["spec"])
        if draw.on("resized") and draw.chance(0.7):
            _resize(draw, pod)
    _incoming(draw, case["pod"])
    _options(draw, case["options"])


def _node(draw: Any, node: dict) -> None:
    if draw.on("declared_features"):
        found = draw.some(NODE_FEATURES, 0, 4)
        node["status"]["declaredFeatures"] = found if draw.chance(0.1) else sorted(found)
    if draw.on("many_taints"):
        node["spec"]["taints"] = [
            {
                "key": draw.pick("abc"),
                "value": draw.pick(TAINT_VALUES),
                "effect": draw.pick((*EFFECTS, "PreferNoSchedule")),
            }
            for _ in range(draw.rng.randint(0, 4))
        ]
    if draw.on("small_requests") and draw.chance(0.1):
        node["status"]["allocatable"].pop(draw.pick(("cpu", "memory", "ephemeral-storage")))


def _spec(draw: Any, spec: dict) -> None:
    if draw.on("sidecars") and draw.chance(0.7):
        spec["initContainers"] = [draw.container(f"i{k}", "web") for k in range(draw.rng.randint(1, 4))]
        for container in spec["initContainers"]:
            if draw.chance(0.5):
                container["restartPolicy"] = "Always"
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    if draw.on("small_requests"):
        names = (
            "cpu",
            "memory",
            "ephemeral-storage",
            "example.com/gpu",
            "requests.cpu",
            "kubernetes.io/batch",
        )
        amounts = ("0", "0.5m", "1n", "0.1", "100m", "1500u", "1.5", "3")
        for container in containers:
            if draw.chance(0.5):
                container["resources"]["requests"] = {n: draw.pick(amounts) for n in draw.some(names, 0, 4)}
    if draw.on("overhead") and draw.chance(0.6):
        names = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
        spec["overhead"] = {n: draw.pick(("0", "250m", "1", "64Mi")) for n in draw.some(names, 0, 3)}
    if draw.on("pod_resources") and draw.chance(0.7):
        names = ("cpu", "memory", "hugepages-2Mi", "ephemeral-storage")
        spec["resources"] = {
            side: {n: draw.pick(("0", "100m", "1", "3", "1Gi")) for n in draw.some(names, 0, 3)}
            for side in draw.some(("requests", "limits"), 1, 2)
        }
    if draw.on("image_volumes") and draw.chance(0.6):
        images = draw.some(IMAGES, 1, 3)
        spec.setdefault("volumes", []).extend(
            {"name": f"image-{k}", "image": {"reference": image}} for k, image in enumerate(images)
        )
    if draw.on("declared_features") and draw.chance(0.5):
        spec |= {"hostNetwork": draw.chance(0.7), "hostUsers": draw.chance(0.3)}
        draw.pick(containers)["restartPolicyRules"] = [
            {
                "action": draw.pick(("Restart", "RestartAllContainers")),
                "exitCodes": {"operator": "In", "values": [42]},
            }
        ]


def _resize(draw: Any, pod: dict) -> None:
    spec, status = pod["spec"], pod["status"]
    for key, containers in (
        ("containerStatuses", spec["containers"]),
        ("initContainerStatuses", spec.get("initContainers", [])),
    ):
        statuses = [
            {"name": c["name"], "restartCount": 0} | _given(draw, c["resources"])
            for c in containers
            if draw.chance(0.8)
        ]
        if statuses:
            status[key] = statuses
    if draw.chance(0.5):
        status |= _given(draw, spec.get("resources"))
    if draw.chance(0.4):
        status["conditions"] = [
            {
                "type": "PodResizePending",
                "status": "True",
                "reason": draw.pick(("Infeasible", "Deferred")),
            }
            for _ in range(2)
        ]


def _given(draw: Any, resources: dict | None) -> dict:
    """Return what a status says: often what the spec says, too."""
    if draw.chance(0.3):
        wanted = resources or {}
        return {"resources": dict(wanted), "allocatedResources": dict(wanted.get("requests", {}))}
    found = {}
    if draw.chance(0.8):
        found["resources"] = draw.pick(({}, {"requests": draw.quantities(1.0)}))
    if draw.chance(0.7):
        found["allocatedResources"] = draw.quantities(1.0)
    return found


def _incoming(draw: Any, pod: dict) -> None:
    spec = pod["spec"]
    if draw.on("gated"):
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
        if draw.chance(0.5):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    if draw.on("many_taints"):
        spec["tolerations"] = [
            {
                "key": draw.pick("abc"),
                "operator": draw.pick(("Exists", "Equal", "Lt", "Gt", "In")),
                "value": draw.pick(TAINT_VALUES),
                "effect": draw.pick(("", *EFFECTS)),
            }
            for _ in range(draw.rng.randint(0, 5))
        ]
        if draw.chance(0.15):
            spec["tolerations"].append({"operator": "Exists", "effect": draw.pick(("", "NoExecute"))})
    if draw.on("node_names"):
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [_node_name_term(draw) for _ in range(draw.rng.randint(1, 4))]
        }
    if draw.on("bad_terms"):
        _spoil(draw, spec)


def _node_name_term(draw: Any) -> dict:
    names = [f"node-{i}" for i in range(draw.n_nodes + 1)]
    return {
        "matchFields": [
            {
                "key": draw.pick(("metadata.name", "metadata.name", "metadata.name", "metadata.uid")),
                "operator": draw.pick(("In", "In", "NotIn")),
                "values": draw.some(names, 1, 2 if draw.chance(0.2) else 1),
            }
            for _ in range(2 if draw.chance(0.2) else 1)
        ]
    }


def _spoil(draw: Any, spec: dict) -> None:
    """Put a term into the pod's node affinity that can't be read, or says nothing."""
    affinity = spec.setdefault("affinity", {})
    wrong = draw.pick(
        (
            {"key": "disk", "operator": "In", "values": []},
            {"key": "-", "operator": "Exists"},
            {"key": "disk", "operator": "Gt", "values": ["x"]},
        )
    )
    required, preferred = (
        f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
    )
    if draw.chance(0.5):
        fields = [{"key": "metadata.name", "operator": "Exists"}]
        term = draw.pick(({"matchExpressions": [wrong]}, {}, {"matchFields": fields}))
        affinity.setdefault("nodeAffinity", {})[preferred] = [
            {"weight": draw.pick((0, 1, 1, 1)), "preference": term}
        ]
    else:
        terms = [{"matchExpressions": [wrong]}, draw.node_term()]
        affinity.setdefault("nodeAffinity", {})[required] = {"nodeSelectorTerms": terms}


def _options(draw: Any, options: dict) -> None:
    if draw.on("weighted_resources"):
        names = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "example.com/none")
        options["requestedToCapacityRatio"] = {
            "shape": [
                {"utilization": u, "score": draw.rng.randint(0, 10)}
                for u in sorted(draw.some(range(101), 1, 4))
            ],
            "resources": [{"name": n, "weight": draw.rng.randint(1, 100)} for n in draw.some(names, 1, 4)],
        }
    if draw.on("gates"):
        gates = {
            "TaintTolerationComparisonOperators": draw.chance(0.7),
            "InPlacePodLevelResourcesVerticalScaling": False,
        }
        if draw.chance(0.5):
            gates["PodLevelResources"] = False
        if draw.chance(0.5):
            gates |= dict.fromkeys(("NodeDeclaredFeatures", *DEPENDENT_GATES), False)
        options["featureGates"] = gates
