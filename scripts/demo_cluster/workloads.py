"""What runs in the demo cluster: ten services and their workloads, each with its pod template."""

from dataclasses import dataclass, field
from typing import Any

from .names import DAY, HOUR, Json

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
POOL = "example.com/pool"
PRIORITY_CLASSES = {"business-critical": 100_000, "node-agent": 1_000_000, "batch": -10}


@dataclass(frozen=True)
class Workload:
    """A workload, and where its pods already are.

    ``older`` pods are still of the ReplicaSet before the current one (None: there is none). Pods prefer the
    pools in their order. Ages are in minutes.
    """

    kind: str
    namespace: str
    name: str
    replicas: int
    spec: Json
    pools: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    age: float = 40 * DAY
    older: int | None = None
    claim: str = ""
    alone: bool = False
    near: str = ""

    @property
    def pod_labels(self) -> dict[str, str]:
        return self.labels or {"app": self.name}


def amounts(text: str) -> dict[str, str]:
    """``cpu=100m memory=1Gi`` as a resource list."""
    return dict(part.split("=") for part in text.split())


def container(name: str, image: str, requests: str, limits: str = "", **more: Any) -> Json:
    resources = {"requests": amounts(requests)} | ({"limits": amounts(limits)} if limits else {})
    return {
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    } | more


def port(number: int, name: str = "http", **more: int) -> Json:
    return {"ports": [{"containerPort": number, "name": name, "protocol": "TCP"} | more]}


def pod_spec(*containers: Json, priority: str = "", **more: Any) -> Json:
    made: Json = {
        "containers": list(containers),
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    if priority:
        made |= {"priorityClassName": priority}
    return made | more


def pod_term(app: str, topology_key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology_key}


def required(*terms: Json) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def preferred(weight: int, term: Json) -> Json:
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term, "weight": weight}]}


def pool_term(*pools: str) -> Json:
    return {"matchExpressions": [{"key": POOL, "operator": "In", "values": list(pools)}]}


def only_pools(*pools: str) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pool_term(*pools)]}}


def rather_pools(weight: int, *pools: str) -> Json:
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"preference": pool_term(*pools), "weight": weight}
        ]
    }


def tolerate(key: str, **more: str) -> Json:
    return {"key": key, "operator": "Exists"} | more


def shop() -> list[Workload]:
    spread = {"podAntiAffinity": preferred(100, pod_term("web", ZONE))}
    proxy = container("proxy", "platform/proxy:1.9.2", "cpu=50m memory=96Mi", "memory=192Mi")
    web = container("web", "shop/web:2.14.0", "cpu=300m memory=512Mi", "cpu=1 memory=1Gi", **port(8080))
    canary = web | {"image": "shop/web:2.15.0-rc1"}
    api = container("api", "shop/api:5.3.1", "cpu=500m memory=1Gi", "memory=2Gi", **port(9090))
    migrate = container("migrate", "shop/api:5.3.1", "cpu=750m memory=256Mi", command=["api", "migrate"])
    cache = container("cache", "shop/cache:7.2.4", "cpu=200m memory=3Gi", "memory=3Gi", **port(6379, "cache"))
    near_api = required(pod_term("api", ZONE)) | preferred(50, pod_term("api", HOSTNAME))
    critical = "business-critical"
    return [
        Workload("Deployment", "shop", "web", 104, pod_spec(web, proxy, priority=critical, affinity=spread),
                 ("general",), labels={"app": "web", "track": "stable"}, older=0),
        Workload("Deployment", "shop", "web-canary", 4, pod_spec(canary, proxy, affinity=spread),
                 ("general",), labels={"app": "web", "track": "canary"}, age=6 * HOUR),
        Workload("Deployment", "shop", "api", 60, pod_spec(api, priority=critical, initContainers=[migrate]),
                 ("general",), older=4),
        Workload("Deployment", "shop", "cache", 30, pod_spec(cache, affinity={"podAffinity": near_api}),
                 ("general",), near="api"),
    ]  # fmt: skip


def data() -> list[Workload]:
    volume = {"volumeMounts": [{"mountPath": "/var/lib/data", "name": "data"}]}
    db = container("db", "data/db:16.4", "cpu=4 memory=32Gi", "memory=32Gi", **port(5432, "sql"), **volume)
    exporter = container(
        "exporter", "platform/exporter:0.17.1", "cpu=50m memory=64Mi", **port(9187, "metrics")
    )
    queue = container("queue", "data/queue:3.13.6", "cpu=1 memory=2Gi", "memory=2Gi", **port(5672), **volume)
    search = container(
        "search", "data/search:8.1.0", "cpu=2 memory=24Gi", "memory=24Gi", **port(9200), **volume
    )
    sysctl = container("settings", "platform/tools:1.4", "cpu=10m memory=16Mi", command=["settings"])
    db_affinity = {
        "nodeAffinity": only_pools("memory"),
        "podAntiAffinity": required(pod_term("db", HOSTNAME)),
    }
    search_affinity = {"nodeAffinity": only_pools("memory") | rather_pools(10, "memory")}
    queue_affinity = {"podAntiAffinity": preferred(100, pod_term("queue", ZONE))}
    critical = "business-critical"
    return [
        Workload("StatefulSet", "data", "db", 6,
                 pod_spec(db, exporter, priority=critical, affinity=db_affinity),
                 ("memory",), claim="200Gi", alone=True),
        Workload("StatefulSet", "data", "queue", 7,
                 pod_spec(queue, priority=critical, affinity=queue_affinity),
                 ("general",), claim="20Gi"),
        Workload("StatefulSet", "data", "search", 9,
                 pod_spec(search, affinity=search_affinity, initContainers=[sysctl]),
                 ("memory",), claim="100Gi"),
    ]  # fmt: skip


def media() -> list[Workload]:
    gpu = "cpu=4 memory=12Gi nvidia.com/gpu=1"
    transcode = container("transcode", "media/transcode:4.0.2", gpu, "memory=16Gi nvidia.com/gpu=1")
    thumbs = container("thumbs", "media/thumbs:1.22.3", "cpu=400m memory=600Mi", "cpu=2 memory=1Gi")
    spread = {
        "labelSelector": {"matchLabels": {"app": "thumbs"}},
        "maxSkew": 2,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    on_gpu = {"nodeSelector": {POOL: "gpu"}, "tolerations": [tolerate("nvidia.com/gpu", effect="NoSchedule")]}
    on_spot = {
        "affinity": {"nodeAffinity": rather_pools(80, "spot")},
        "tolerations": [tolerate("example.com/spot", effect="PreferNoSchedule")],
        "topologySpreadConstraints": [spread],
    }
    return [
        Workload("Deployment", "media", "transcode", 8, pod_spec(transcode, priority="batch", **on_gpu),
                 ("gpu",)),
        Workload("Deployment", "media", "thumbs", 106, pod_spec(thumbs, priority="batch", **on_spot),
                 ("spot", "general")),
    ]  # fmt: skip


def platform() -> list[Workload]:
    agent = container("agent", "platform/log-agent:3.1.6", "cpu=100m memory=128Mi", "memory=256Mi",
                      **port(24224, "forward", hostPort=24224))  # fmt: skip
    mail = container(
        "mail", "platform/mail:0.98", "cpu=100m memory=256Mi", "memory=512Mi", **port(2525, "smtp")
    )
    everywhere = pod_spec(agent, priority="node-agent", tolerations=[{"operator": "Exists"}])
    pools = ("control", "general", "memory", "gpu", "spot")
    return [
        Workload("DaemonSet", "platform", "log-agent", 50, everywhere, pools, alone=True),
        Workload("ReplicationController", "platform", "mail", 12, pod_spec(mail), ("general",)),
    ]


def lone() -> list[Workload]:
    """Pods that no service selects: three bare ones, and a job's that has ended."""
    tools = "platform/tools:1.4"
    shell = container("shell", tools, "cpu=50m memory=64Mi", command=["sleep", "infinity"])
    copy = container("import", "media/import:2.2", "cpu=500m memory=1Gi")
    reindex = container("reindex", "data/search:8.1.0", "cpu=48 memory=96Gi")
    report = container("report", "data/report:1.0.7", "cpu=250m memory=512Mi")
    once = {"restartPolicy": "Never"}
    return [
        Workload("Pod", "platform", "debug-shell", 1, pod_spec(shell), ("general",), age=2 * DAY),
        Workload("Pod", "media", "import-archive", 1, pod_spec(copy, **once), ("general",), age=5 * HOUR),
        Workload(
            "Pod", "data", "reindex-all", 1, pod_spec(reindex, priority="batch", **once), (), age=4 * HOUR
        ),
        Workload("Job", "data", "nightly-report", 1, pod_spec(report, **once), ("general",), age=10 * HOUR),
    ]


def workloads() -> list[Workload]:
    """All, in the order in which their pods are placed: those that fit on few nodes first."""
    return sorted(
        platform() + data() + media() + shop() + lone(),
        key=lambda workload: (workload.kind != "DaemonSet", not workload.claim),
    )


# The service's name, port, and whether it is headless; each selects `app=<name>`.
SERVICES = (
    ("shop", "web", 80, False), ("shop", "api", 9090, False), ("shop", "cache", 6379, False),
    ("data", "db", 5432, True), ("data", "queue", 5672, True), ("data", "search", 9200, True),
    ("media", "transcode", 8080, False), ("media", "thumbs", 8080, False),
    ("platform", "log-agent", 24224, False), ("platform", "mail", 25, False),
)  # fmt: skip

# What one pod uses at present. The agent and the mail have no profile: their requests stand in.
PROFILES = (
    ("shop", "web", "cpu", "240m", "380Mi"), ("shop", "api", "cpu", "410m", "700Mi"),
    ("shop", "cache", "memory", "90m", "2600Mi"), ("data", "db", "memory", "2800m", "29Gi"),
    ("data", "queue", "memory", "350m", "1500Mi"), ("data", "search", "memory", "1600m", "21Gi"),
    ("media", "transcode", "cpu", "3500m", "9Gi"), ("media", "thumbs", "cpu", "370m", "420Mi"),
)  # fmt: skip
