"""What real nodes and pods carry besides: it changes no decision, but has to be read past."""

import hashlib

from berth.sim.manifests import MADE, PodNames
from berth.sim.recipe import JsonObject

ENVIRONMENT = (
    "LISTEN_ADDRESS", "LOG_LEVEL", "LOG_FORMAT", "QUEUE_NAME", "CACHE_TTL_SECONDS", "MAX_CONNECTIONS",
    "FEATURE_FLAGS", "TRACE_SAMPLING",
)  # fmt: skip
MOUNTS = {"config": "/etc/app", "scratch": "/var/tmp/app", "certificates": "/etc/ssl/app"}
N_IMAGES = 12


def padded_node(node: JsonObject) -> JsonObject:
    """Add addresses, further conditions, images and system information to a node."""
    name = node["metadata"]["name"]
    number = int(name.rpartition("-")[2])
    healthy = [
        {
            "lastHeartbeatTime": MADE,
            "lastTransitionTime": MADE,
            "message": f"kubelet reports no {kind}",
            "reason": f"KubeletHasNo{kind}",
            "status": "False",
            "type": kind,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    images = [
        {"names": [f"example/shape-{(number * 7 + i) % 150:03d}:1.0"], "sizeBytes": 10**8 + i * 10**6}
        for i in range(N_IMAGES)
    ]
    system = {
        "architecture": "amd64",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.33.4",
        "machineID": node["metadata"]["uid"].replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "Example Linux 12",
    }
    status = node["status"] | {
        "addresses": [{"address": name, "type": "Hostname"}],
        "conditions": [*healthy, *node["status"]["conditions"]],
        "images": images,
        "nodeInfo": system,
    }
    spec = node["spec"] | {"providerID": f"example:///{name}"}
    return node | {"spec": spec, "status": status}


def padded_pod(pod: JsonObject, names: PodNames) -> JsonObject:
    """Add to a pod what admission, kubelet and a usual template put there."""
    app = pod["metadata"]["labels"]["app"]
    annotations = {
        "checksum/config": digest_of(app),
        "example.com/contact": f"the people who look after {app} and its neighbours, at any hour",
        "example.com/scrape": "true",
        "example.com/scrape-path": "/metrics",
        "example.com/scrape-port": "9102",
    }
    made = pod | {
        "metadata": pod["metadata"] | {"annotations": annotations, "resourceVersion": "123456789"},
        "spec": _spec(pod["spec"], names),
    }
    return made | {"status": _status(made, names)} if names.node else made


def digest_of(text: str) -> str:
    """Return a digest such as images have."""
    return hashlib.sha256(text.encode()).hexdigest()


def _spec(spec: JsonObject, names: PodNames) -> JsonObject:
    evictions = [
        {
            "effect": "NoExecute",
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "tolerationSeconds": 300,
        }
        for trouble in ("not-ready", "unreachable")
    ]
    token = f"kube-api-access-{names.token}"
    return spec | {
        "containers": [_container(container, token) for container in spec["containers"]],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "restartPolicy": "Always",
        "securityContext": {"fsGroup": 1000, "runAsNonRoot": True, "runAsUser": 1000},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [*spec.get("tolerations", []), *evictions],
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": "app-config"}, "name": "config"},
            {"emptyDir": {"sizeLimit": "1Gi"}, "name": "scratch"},
            {"name": "certificates", "secret": {"defaultMode": 420, "secretName": "app-certificates"}},
            _token_volume(token),
        ],
    }


def _container(container: JsonObject, token: str) -> JsonObject:
    mounts = [{"mountPath": path, "name": name, "readOnly": True} for name, path in MOUNTS.items()]
    mounts.append(
        {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": True}
    )
    own = [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for name, path in (("POD_NAME", "metadata.name"), ("NODE_NAME", "spec.nodeName"))
    ]
    settings = [{"name": name, "value": f"{name.lower()} of {container['name']}"} for name in ENVIRONMENT]
    limits = {"limits": container["resources"]["requests"]}
    return container | {
        "args": ["serve", "--config=/etc/app/config.yaml", "--scratch=/var/tmp/app", "--verbose"],
        "env": own + settings,
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": _probe("/healthz", 15),
        "ports": [
            {"containerPort": 8080, "name": "http", "protocol": "TCP"},
            {"containerPort": 9102, "name": "metrics", "protocol": "TCP"},
        ],
        "readinessProbe": _probe("/readyz", 5),
        "resources": container["resources"] | limits,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "startupProbe": _probe("/healthz", 1),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": mounts,
    }


def _probe(path: str, period_seconds: int) -> JsonObject:
    return {
        "failureThreshold": 3,
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period_seconds,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }


def _token_volume(name: str) -> JsonObject:
    """The projected volume that admission adds to every pod, under a name of the pod's own."""
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
    sources: list[JsonObject] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"defaultMode": 420, "sources": sources}}


def _status(pod: JsonObject, names: PodNames) -> JsonObject:
    image = pod["spec"]["containers"][0]["image"]
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": names.created, "status": "True", "type": kind}
        for kind in ("PodReadyToStartContainers", "Initialized", "PodScheduled")
    ]
    ready = {"lastProbeTime": None, "lastTransitionTime": names.ready, "status": "True"}
    container = {
        "containerID": f"containerd://{names.digest}",
        "image": image,
        "imageID": f"{image.partition(':')[0]}@sha256:{digest_of(image)}",
        "lastState": {},
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": names.ready}},
    }
    status: JsonObject = pod["status"]
    return status | {
        "conditions": [*conditions, ready | {"type": "Ready"}, ready | {"type": "ContainersReady"}],
        "containerStatuses": [container],
        "hostIP": "10.255.0.1",
        "phase": "Running",
        "podIP": names.address,
        "podIPs": [{"ip": names.address}],
        "qosClass": "Guaranteed",
    }
