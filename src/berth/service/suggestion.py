"""What to try next, as lines that work as printed."""

import json
import shlex
from collections.abc import Iterator


def curl_line(url: str, namespace: str, service: str, *, number: int = 3) -> str:
    """Return a command that adds pods to a service."""
    entry = {"operation": 1, "namespace": namespace, "serviceName": service, "number": str(number)}
    body = json.dumps({"podList": [entry]})
    return f"curl -H 'Content-Type: application/json' -d {shlex.quote(body)} {url}/schedulePod"


def suggestions(url: str, namespace: str, service: str) -> Iterator[str]:
    """Yield what to try, line by line."""
    yield f"Add 3 pods to the service {namespace}/{service}:"
    yield f"  {curl_line(url, namespace, service)}"
    yield "See what the last round decided, with the scores of the chosen nodes:"
    yield f"  curl '{url}/rounds?limit=1'; curl {url}/rounds/1"
    yield f"The cluster and the latest rounds, in a browser: {url}/"
