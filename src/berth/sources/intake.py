"""Takes objects of all kinds into a cluster, whatever file they come from, and notes all that is wrong with them."""

from array import array
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.cluster.pods import PodRows
from berth.errors import BerthError
from berth.objects.base import ObjectMeta
from berth.objects.decode import decode, without_nulls
from berth.objects.nodes import Node
from berth.objects.pod_records import PodItem
from berth.objects.pods import Pod
from berth.sources.checks import in_words, mistakes_of, name_of, spec_mistakes
from berth.sources.json_stream import Found, ListHead
from berth.sources.kinds import KINDS, Kind, kind_of

_IN_CLUSTER = "the cluster"


class Envelope(msgspec.Struct, rename="camel"):
    """What tells an object's kind; for a list, its items too."""

    kind: str = ""
    api_version: str = ""
    items: msgspec.Raw = msgspec.Raw(b"[]")


class ObjectError(BerthError):
    """An object that can't be taken in, with all that is wrong with it."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


@dataclass(slots=True)
class Report:
    """What has become of the objects of a snapshot."""

    taken: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    n_files_passed_over: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """Where objects were seen first: the file, and the object's number in it."""

    files: list[str] = field(default_factory=list)
    places: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    pod_files: "array[int]" = field(default_factory=lambda: array("I"))
    pod_numbers: "array[int]" = field(default_factory=lambda: array("I"))


class Intake:
    """One load: objects go in one by one, pods into the cluster at its end.

    Attributes
    ----------
    n_objects : int
        How many things of a file looked like Kubernetes objects or lists, of use or not.
    """

    def __init__(self, cluster: Cluster, *, lenient: bool = False) -> None:
        self.cluster = cluster
        self.lenient = lenient
        self.report = Report()
        self.mistakes: list[str] = []
        self.n_objects = 0
        self._seen = _Seen()
        self._pods = PodRows()
        self._had_pods = len(cluster.pods) > 0
        self._spec_mistakes: list[list[str]] = []
        self._expects_pod = False
        self._deferred: list[tuple[bytes, int]] = []
        self._deferred_of: ListHead | None = None
        self._pod_decoder = msgspec.json.Decoder(PodItem)
        self._envelope_decoder = msgspec.json.Decoder(Envelope)

    def start_file(self, name: str) -> None:
        """Note the file that the objects come from, from now on."""
        self._seen.files.append(name)
        self._deferred.clear()

    def stumble(self, problem: str) -> None:
        """Note that the rest of the file can't be read."""
        self._tell(f"{self._seen.files[-1]}: {problem}", "the rest of the file is left out: ")

    def decode(self, text: memoryview) -> PodItem | Envelope:
        """Decode an object: as a pod at once if the last one was a pod, else only as far as its kind."""
        if self._expects_pod:
            return self._pod_decoder.decode(text)
        return self._envelope_decoder.decode(text)

    def take(self, found: Found[PodItem | Envelope]) -> None:
        """Take an object in, or pass it over."""
        item = found.decoded
        if type(item) is PodItem and _is_pod(item, found.list_head):
            self.n_objects += 1
            self._take_pod(item, found.text, found.number)
            return
        if type(item) is not Envelope:
            item = self._envelope(found.text) or Envelope()
        kind, api_version, head = item.kind, item.api_version, found.list_head
        if not kind and head is not None:
            if not head.kind:  # it comes after the items
                self._deferred.append((bytes(found.text), found.number))
                return
            kind, api_version = _item_kind(head), head.api_version
        self._take_kind(kind, api_version, found.text, found.number)

    def end_list(self, head: ListHead) -> None:
        """Count a list, and take the items whose kind only its end has told."""
        self.n_objects += bool(head.kind)
        for text, number in self._deferred:
            self._take_kind(_item_kind(head), head.api_version, memoryview(text), number)
        self._deferred.clear()

    def take_document(self, document: object, number: int) -> int:
        """Take a document that is decoded already, its items if it is a list; return the next one's number."""
        if not isinstance(document, dict):
            return number + 1
        kind, items, head = document.get("kind"), document.get("items"), None
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            head = ListHead(kind, str(document.get("apiVersion", "")))
            self.n_objects += 1
        else:
            items = [document]
        for i, item in enumerate(items):
            try:
                text = msgspec.json.encode(item)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                self._blame("object", b"", number + i, [f"it can't be written as JSON: {error}"])
                continue
            self.take(Found(number + i, memoryview(text), self._envelope(text), head))
        return number + len(items)

    def finish(self) -> None:
        """Add the pods to the cluster, and warn of those on nodes that are not there."""
        homeless = self.cluster.n_homeless
        if len(self._pods):
            self.report.taken["Pod"] += len(self._pods)
            self.cluster.add_pods(self._pods)
        homeless = self.cluster.n_homeless - homeless
        if homeless:
            pods = "1 pod is on a node" if homeless == 1 else f"{homeless} pods are on nodes"
            self.report.warnings.append(f"{pods} that the snapshot does not hold: kept, but counted nowhere")
        self._pods = PodRows()

    # -- kinds -----------------------------------------------------------------------------------------------------

    def _envelope(self, text: bytes | memoryview) -> Envelope | None:
        try:
            return self._envelope_decoder.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return None

    def _take_kind(self, name: str, api_version: str, text: memoryview, number: int) -> None:
        if name:
            self.n_objects += 1
        if name.endswith("List") and name not in KINDS:
            self._take_inner_list(name, api_version, text, number)
            return
        kind = kind_of(name, api_version)
        self._expects_pod = name == "Pod" and kind is not None
        if kind is None:
            self._pass_over(name, api_version)
        elif name == "Pod":
            self._take_late_pod(text, number)
        else:
            self._take_other(name, kind, text, number)

    def _take_inner_list(self, name: str, api_version: str, text: memoryview, number: int) -> None:
        envelope = self._envelope(text)
        try:
            items = msgspec.json.decode(envelope.items, type=list[msgspec.Raw]) if envelope else []
        except msgspec.DecodeError as error:
            self._blame(name, text, number, [in_words(error, "items")])
            return
        head = ListHead(name, api_version)
        for item in items:
            inner = memoryview(item)
            self.take(Found(number, inner, self._envelope(inner), head))

    def _pass_over(self, name: str, api_version: str) -> None:
        if name:
            is_namesake = name in KINDS
            self.report.passed_over[f"{name}.{api_version.rpartition('/')[0]}" if is_namesake else name] += 1

    # -- pods ------------------------------------------------------------------------------------------------------

    def _take_late_pod(self, text: memoryview, number: int) -> None:
        """Take a pod whose bytes have not been decoded as one yet."""
        try:
            record = self._pod_decoder.decode(text)
        except (msgspec.DecodeError, RecursionError):
            try:
                plain = without_nulls(msgspec.json.decode(text))
                record = self._pod_decoder.decode(msgspec.json.encode(plain))
            except (msgspec.DecodeError, RecursionError) as error:
                self._blame("Pod", text, number, _all_mistakes(text, Pod, error))
                return
        self._take_pod(record, text, number)

    def _take_pod(self, record: PodItem, text: memoryview, number: int) -> None:
        try:
            values = self.cluster.values_of(record)
        except (BerthError, msgspec.DecodeError) as error:
            self._blame("Pod", text, number, _all_mistakes(text, Pod, error))
            return
        if values.spec_id >= len(self._spec_mistakes):
            self._check_specs(values.spec_id)
        mistakes = self._spec_mistakes[values.spec_id]
        if mistakes or not values.name:
            self._blame("Pod", text, number, mistakes or ["metadata.name: absent, but needed"])
            return
        seen = self._seen
        known = self.cluster.pods.find(values.namespace_id, values.name) if self._had_pods else NONE
        row = len(self._pods)
        first = self._pods.append(values) if known == NONE else row
        if known != NONE or first != row:
            place = (
                f"{seen.files[seen.pod_files[first]]} (number {seen.pod_numbers[first]})"
                if known == NONE
                else _IN_CLUSTER
            )
            self._blame("Pod", text, number, [_twice(place)])
            return
        seen.pod_files.append(len(seen.files) - 1)
        seen.pod_numbers.append(number)

    def _check_specs(self, spec_id: int) -> None:
        for i in range(len(self._spec_mistakes), spec_id + 1):
            self._spec_mistakes.append(list(spec_mistakes(self.cluster.specs[i].spec)))

    # -- other kinds -----------------------------------------------------------------------------------------------

    def _take_other(self, name: str, kind: Kind, text: memoryview, number: int) -> None:
        try:
            item = decode(bytes(text), kind.struct)
        except (msgspec.DecodeError, RecursionError) as error:
            self._blame(name, text, number, [in_words(error)])
            return
        meta: ObjectMeta = item.metadata
        mistakes = list(mistakes_of(item))
        if not meta.name:
            mistakes.insert(0, "metadata.name: absent, but needed")
        item = msgspec.structs.replace(item, metadata=kind.kept(meta))
        key = (name, item.metadata.namespace, meta.name)
        if not mistakes and (place := self._first_place(key)):
            mistakes.append(_twice(place))
        if mistakes:
            self._blame(name, text, number, mistakes)
            return
        self._seen.places[key] = (len(self._seen.files) - 1, number)
        if isinstance(item, Node):
            self.cluster.put_node(item)
        else:
            self.cluster.put(item)
        self.report.taken[name] += 1

    def _first_place(self, key: tuple[str, str, str]) -> str:
        """Tell where an object was seen before; empty if it was not."""
        if key in self._seen.places:
            file, number = self._seen.places[key]
            return f"{self._seen.files[file]} (number {number})"
        kind, namespace, name = key
        if kind == "Node":
            return _IN_CLUSTER if self.cluster.nodes.row(name) >= 0 else ""
        shelf = self.cluster.objects.by_kind()[kind]
        there: NamedObject | None = shelf.get(namespace, name)
        return _IN_CLUSTER if there is not None else ""

    def _blame(self, kind: str, text: bytes | memoryview, number: int, mistakes: list[str]) -> None:
        name = name_of(text, kind, number)
        file = self._seen.files[-1]
        told = [f"{file}: {name}: {mistake}" for mistake in mistakes]
        for line in told:
            self._tell(line, "skipped: ")

    def _tell(self, mistake: str, consequence: str) -> None:
        if self.lenient:
            self.report.warnings.append(f"{consequence}{mistake}")
        else:
            self.mistakes.append(mistake)


def _twice(place: str) -> str:
    return f"seen twice: first in {place}"


def _all_mistakes(text: memoryview, struct: type[Pod], error: Exception) -> list[str]:
    """Decode a broken pod as a whole, for the paths of all that is wrong with it."""
    try:
        found = list(mistakes_of(decode(bytes(text), struct)))
    except (msgspec.DecodeError, RecursionError) as complete:
        return [in_words(complete)]
    return found or [in_words(error)]


def _item_kind(head: ListHead) -> str:
    """Return the kind of a list's items that do not say theirs; a plain ``List`` does not tell."""
    return head.kind.removesuffix("List") or "(no kind)"


def _is_pod(item: PodItem, head: ListHead | None) -> bool:
    if item.kind:
        return item.kind == "Pod" and item.api_version in ("v1", "")
    return head is not None and head.kind == "PodList" and head.api_version in ("v1", "")
