"""Where the API server is and who we are: from a kubeconfig (tokens, certificates, exec plugins, OIDC) or from the pod."""

import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config.incluster_config import SERVICE_HOST_ENV_NAME
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

from berth.live.api_errors import CredentialsError

_UNUSABLE = (
    config.ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, AssertionError, yaml.YAMLError,
)  # fmt: skip


class Credentials:
    """Loaded by `load` and kept fresh by `refresh`.

    Without a kubeconfig: the service account inside a pod, else ``$KUBECONFIG``, else ``~/.kube/config``.

    Attributes
    ----------
    url : str
        Of the API server, without a slash at the end.
    tls : ssl.SSLContext
        Checks the server's certificate, unless the kubeconfig has ``insecure-skip-tls-verify``.
    authorization : str
        The header; empty for client certificates.
    server_name, proxy : str or None
        ``tls-server-name`` and ``proxy-url`` of the kubeconfig; the proxy else as the environment has it.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._loader: KubeConfigLoader | None = None
        self._certificate: tuple[str, str | None] | None = None
        self.url = ""
        self.tls = ssl.create_default_context()
        self.authorization = ""
        self.server_name: str | None = None
        self.proxy: str | None = None

    async def load(self) -> None:
        """Load all of it; exec plugins are run.

        Raises
        ------
        CredentialsError
            With what is wrong.
        """
        found = await self._read(anew=True)
        try:
            self.tls = _tls(found)
        except OSError as error:
            raise CredentialsError(f"{found.ssl_ca_cert}: {error}") from error
        self._take(found)

    async def refresh(self, *, anew: bool = False) -> None:
        """Read token files again, and get new tokens and certificates in place of those that end soon.

        Parameters
        ----------
        anew : bool
            In place of all: the server refuses those we have.

        Raises
        ------
        CredentialsError
            With what is wrong; what there was stays.
        """
        self._take(await self._read(anew=anew))

    async def _read(self, *, anew: bool) -> Configuration:
        found = Configuration()
        try:
            if self._kubeconfig is None and os.environ.get(SERVICE_HOST_ENV_NAME):
                config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
            elif anew or self._loader is None:
                self._loader = await config.load_kube_config(self._file(), self._context, found)
            else:
                await self._loader.load_and_set(found)
        except _UNUSABLE as error:
            raise CredentialsError(f"{self._kubeconfig or 'credentials'}: {error}") from error
        return found

    def _file(self) -> str:
        named = str(self._kubeconfig) if self._kubeconfig else os.environ.get("KUBECONFIG", "")
        names = named or str(Path.home() / ".kube" / "config")
        if not any(Path(name).expanduser().is_file() for name in names.split(os.pathsep)):
            raise CredentialsError(f"{names}: there is no such kubeconfig, and this is no pod")
        return names

    def _take(self, found: Configuration) -> None:
        if found.cert_file and (found.cert_file, found.key_file) != self._certificate:
            try:
                self.tls.load_cert_chain(found.cert_file, found.key_file)  # for connections from now on
            except OSError as error:
                raise CredentialsError(f"{found.cert_file}: {error}") from error
            self._certificate = (found.cert_file, found.key_file)
        self.url = str(found.host).rstrip("/")
        self.authorization = str(found.api_key.get("BearerToken", "")).strip()
        self.server_name = found.tls_server_name
        self.proxy = found.proxy or _proxy_of_environment(self.url)


def _tls(found: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=found.ssl_ca_cert)
    # Clusters' own authorities often lack key identifiers, which Python 3.13 would refuse; Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not found.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_of_environment(url: str) -> str | None:
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
