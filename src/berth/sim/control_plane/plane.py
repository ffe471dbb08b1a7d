"""A control plane on loopback, whose parts can be killed and started again."""

import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from berth.errors import BerthError
from berth.sim.control_plane.binaries import Binaries
from berth.sim.control_plane.processes import Process, free_port

TOKEN = "admin-token"
CONTROLLERS = (
    "deployment", "replicaset", "statefulset", "replicationcontroller", "garbagecollector", "namespace",
    "serviceaccount",
)  # fmt: skip
_READY_S = 60.0
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- {{name: test, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{certificate}"}}}}
users:
- {{name: admin, user: {{token: {token}}}}}
contexts:
- {{name: test, context: {{cluster: test, user: admin}}}}
current-context: test
"""
_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: "{kubeconfig}", qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
"""


class StartError(BerthError):
    """The control plane does not come up; the message has the last words of its parts."""


class ControlPlane:
    """etcd and kube-apiserver, and the other parts when they are asked for.

    Attributes
    ----------
    kubeconfig : Path
        An administrator's; the API server's certificate is checked.
    etcd, apiserver : Process
        To be killed, and started again with `start_apiserver`.
    """

    def __init__(self, binaries: Binaries, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self.port, self._etcd_port, peer_port = free_port(), free_port(), free_port()
        self.kubeconfig = self.kubeconfig_for(self.port)
        self._etcd_url = f"http://127.0.0.1:{self._etcd_port}"
        self.etcd = self._process("server", self._etcd_arguments(f"http://127.0.0.1:{peer_port}"), "etcd")
        self.apiserver = self._process("kube-apiserver", self._apiserver_arguments())
        self._others: list[Process] = []

    def start(self) -> None:
        """Start etcd and kube-apiserver and wait until they are ready.

        Raises
        ------
        StartError
            They are not, within a minute.
        """
        key, public = self._folder / "sa.key", self._folder / "sa.pub"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        derive = ["openssl", "rsa", "-in", str(key), "-pubout", "-out", str(public)]
        subprocess.run(derive, check=True, capture_output=True)
        (self._folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        self.etcd.start()
        self.start_apiserver()

    def start_apiserver(self) -> None:
        """Start kube-apiserver and wait until it is ready."""
        self.apiserver.start()
        deadline = time.monotonic() + _READY_S
        while not self._is_ready():
            if not self.apiserver.runs or not self.etcd.runs or time.monotonic() > deadline:
                words = f"{self.etcd.last_words()}\n{self.apiserver.last_words()}"
                self.stop()
                raise StartError(f"the control plane does not come up:\n{words}")
            time.sleep(0.2)

    def start_controller_manager(self, more: Iterable[str] = ()) -> Process:
        """Start kube-controller-manager with `CONTROLLERS` and ``more``."""
        arguments = {
            "kubeconfig": self.kubeconfig,
            "controllers": ",".join((*CONTROLLERS, *more)),
            "leader-elect": "false",
            "kube-api-qps": 2000,
            "kube-api-burst": 2000,
            "secure-port": 0,
        }
        return self._start_other("kube-controller-manager", arguments)

    def start_scheduler(self) -> Process:
        """Start kube-scheduler, with room for 5,000 requests a second."""
        config = self._folder / "scheduler.yaml"
        config.write_text(_SCHEDULER.format(kubeconfig=self.kubeconfig), "utf-8")
        return self._start_other("kube-scheduler", {"config": config, "secure-port": 0})

    def start_kwok(self) -> Process:
        """Start what plays the kubelets: nodes stay Ready, bound pods run, deleted ones go."""
        arguments = {
            "kubeconfig": self.kubeconfig,
            "manage-all-nodes": "true",
            "config": self._folder_of("kwok") / "stages.yaml",
        }
        return self._start_other("kwok", arguments)

    def start_python(self, name: str, *arguments: object) -> Process:
        """Start a Python program, ``-m MODULE …``; its log is named."""
        command = [sys.executable, *(str(argument) for argument in arguments)]
        return self._start_beside(Process(command, self._folder / f"{name}.log"))

    def compact(self) -> int:
        """Have etcd drop all that is not current, and return the revision up to which it did."""
        revision = int(self._ask_etcd("maintenance/status", {})["header"]["revision"])
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})
        return revision

    def stop(self) -> None:
        """Stop all that runs and wait until it has gone."""
        for process in (*reversed(self._others), self.apiserver, self.etcd):
            process.stop()

    def kubeconfig_for(self, port: int) -> Path:
        """Write a kubeconfig whose server is on a port, this one's or that of a proxy before it."""
        file = self._folder / f"kubeconfig-{port}"
        certificate = self._folder / "certs" / "apiserver.crt"
        file.write_text(_KUBECONFIG.format(port=port, token=TOKEN, certificate=certificate), "utf-8")
        return file

    def _start_other(self, program: str, arguments: dict[str, object]) -> Process:
        return self._start_beside(self._process(program, arguments))

    def _start_beside(self, process: Process) -> Process:
        process.start()
        self._others.append(process)
        return process

    def _process(self, program: str, arguments: dict[str, object], name: str = "") -> Process:
        flags = [f"--{key}={value}" for key, value in arguments.items()]
        return Process(
            [str(self._folder_of(program) / program), *flags], self._folder / f"{name or program}.log"
        )

    def _folder_of(self, program: str) -> Path:
        if program != "kwok":
            return self._binaries.control_plane
        assert self._binaries.kwok is not None, "KWOK was not asked for"
        return self._binaries.kwok

    def _etcd_arguments(self, peer_url: str) -> dict[str, object]:
        return {
            "data-dir": self._folder / "etcd",
            "unsafe-no-fsync": "true",
            "listen-client-urls": self._etcd_url,
            "advertise-client-urls": self._etcd_url,
            "listen-peer-urls": peer_url,
            "initial-advertise-peer-urls": peer_url,
            "initial-cluster": f"default={peer_url}",
            "quota-backend-bytes": 4 << 30,
            "log-level": "error",
        }

    def _apiserver_arguments(self) -> dict[str, object]:
        return {
            "etcd-servers": self._etcd_url,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self.port,
            "cert-dir": self._folder / "certs",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._folder / "sa.pub",
            "service-account-signing-key-file": self._folder / "sa.key",
            "token-auth-file": self._folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.0.0.0/16",
            "endpoint-reconciler-type": "none",
            "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
            "max-requests-inflight": 3000,
            "max-mutating-requests-inflight": 1000,
            "enable-priority-and-fairness": "false",
            "profiling": "false",
        }

    def _is_ready(self) -> bool:
        certificate = self._folder / "certs" / "apiserver.crt"
        if not certificate.is_file():
            return False
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        try:
            trusted = ssl.create_default_context(cafile=certificate)
            with urllib.request.urlopen(request, timeout=5, context=trusted) as response:
                return bool(response.read() == b"ok")
        except (OSError, ssl.SSLError, urllib.error.URLError):
            return False

    def _ask_etcd(self, what: str, body: dict[str, object]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._etcd_url}/v3/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: dict[str, Any] = json.loads(response.read())
            return answer
