"""Kinds as the API has them: their paths, and how lists and watches of them are decoded."""

import logging
from typing import Any, NamedTuple

import msgspec

from berth.live.api_errors import Status
from berth.objects.base import KubernetesStruct
from berth.objects.decode import decode, without_nulls
from berth.objects.pod_records import MetadataSlice, PodRecord
from berth.sources.kinds import KINDS, Kind

log = logging.getLogger(__name__)


class Arrived(NamedTuple):
    """An object as it came; ``item`` is None where it can't be read (which is logged)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    item: PodRecord | KubernetesStruct | None


class Page(NamedTuple):
    """A part of a list; ``rest`` is the token of the next one, empty at the end."""

    resource_version: str
    rest: str
    items: list[Arrived]


class Line(NamedTuple):
    """A line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK with what arrived, or ERROR with the server's status."""

    type: str
    arrived: Arrived | None = None
    status: Status | None = None


class _Struct(msgspec.Struct, rename="camel", gc=False):
    pass


class _ListMeta(_Struct):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(_Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Line(_Struct):
    type: str
    object: msgspec.Raw


class _HeadMeta(_Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Head(_Struct):
    metadata: _HeadMeta


class _LivePodMeta(MetadataSlice):
    resource_version: str = ""
    generation: int = 0


class LivePod(PodRecord):
    """A pod's record with its resource version and its generation."""

    metadata: _LivePodMeta


class _PodPage(_Struct):
    metadata: _ListMeta
    items: list[LivePod] = []


class _PodLine(_Struct):
    type: str
    object: LivePod


_page_decoder = msgspec.json.Decoder(_Page)
_line_decoder = msgspec.json.Decoder(_Line)
_head_decoder = msgspec.json.Decoder(_Head)
_pod_decoder = msgspec.json.Decoder(LivePod)
_pod_page_decoder = msgspec.json.Decoder(_PodPage)
_pod_line_decoder = msgspec.json.Decoder(_PodLine)


class Resource:
    """A kind, with its path and its ways to decode.

    Attributes
    ----------
    path : str
        Of the list over all namespaces, such as ``/apis/apps/v1/replicasets``.
    """

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.kind = kind
        root = "apis" if "/" in kind.api_version else "api"
        self.path = f"/{root}/{kind.api_version}/{_plural(name)}"

    def page(self, data: bytes) -> Page:
        """Decode a page of a list.

        Raises
        ------
        msgspec.DecodeError
            It is none.
        """
        page = _page_decoder.decode(data)
        meta = page.metadata
        return Page(meta.resource_version, meta.continue_, [self._arrived(raw) for raw in page.items or ()])

    def line(self, data: bytes) -> Line:
        """Decode a line of a watch.

        Raises
        ------
        msgspec.DecodeError
            It is none.
        """
        line = _line_decoder.decode(data)
        if line.type == "ERROR":
            return Line(line.type, status=msgspec.json.decode(line.object, type=Status))
        if line.type == "BOOKMARK":
            return Line(line.type, _arrived(_head_decoder.decode(line.object).metadata, None))
        return Line(line.type, self._arrived(line.object))

    def _arrived(self, raw: msgspec.Raw) -> Arrived:
        meta = _head_decoder.decode(raw).metadata
        try:
            return _arrived(meta, self._item(raw))
        except msgspec.DecodeError as error:
            log.warning("%s %s/%s can't be read: %s", self.name, meta.namespace, meta.name, error)
            return _arrived(meta, None)

    def _item(self, raw: msgspec.Raw) -> PodRecord | KubernetesStruct:
        item: Any = decode(raw, self.kind.struct)
        replaced: KubernetesStruct = msgspec.structs.replace(item, metadata=self.kind.kept(item.metadata))
        return replaced


class PodResource(Resource):
    """Pods: they come by the thousand, and are decoded in one go where nothing is unusual about them."""

    def page(self, data: bytes) -> Page:
        try:
            page = _pod_page_decoder.decode(data)
        except msgspec.ValidationError:
            return super().page(data)
        return Page(
            page.metadata.resource_version,
            page.metadata.continue_,
            [_arrived(p.metadata, p) for p in page.items],
        )

    def line(self, data: bytes) -> Line:
        try:
            line = _pod_line_decoder.decode(data)
        except msgspec.ValidationError:
            return super().line(data)
        if line.type == "ERROR":
            return super().line(data)
        return Line(line.type, _arrived(line.object.metadata, line.object))

    def _item(self, raw: msgspec.Raw) -> PodRecord:
        return _pod_decoder.decode(msgspec.json.encode(without_nulls(msgspec.json.decode(raw))))


def _arrived(meta: _HeadMeta | _LivePodMeta, item: PodRecord | KubernetesStruct | None) -> Arrived:
    return Arrived(meta.namespace, meta.name, meta.uid, meta.resource_version, item)


def _plural(name: str) -> str:
    lower = name.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


RESOURCES = {
    name: PodResource(name, kind) if name == "Pod" else Resource(name, kind) for name, kind in KINDS.items()
}
"""All kinds that a cluster is made of."""
