"""Volumes and claims that pods have taken: the cluster has them as they will be, here is what the API server has.

Source: 1.36, ``volumebinding/passive_assume_cache.go``. Knows no API server and no clock.
"""

from typing import NamedTuple

from berth.cluster.cluster import Cluster
from berth.live.events import Event
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim

Assumable = PersistentVolume | PersistentVolumeClaim
ASSUMABLE = frozenset(("PersistentVolume", "PersistentVolumeClaim"))

Key = tuple[str, str, str]
"""Kind, namespace, name."""


class Told(NamedTuple):
    """An object as the watch has told of it last, and its resource version."""

    item: Assumable
    version: str


def key_of(item: Assumable) -> Key:
    """Return the key of an object."""
    return type(item).__name__, item.metadata.namespace, item.metadata.name


class AssumedObjects:
    """Ties what is assumed of an object to the version of which it is assumed.

    A newer version takes the place of the assumption, whatever it says; the same one told again, or an older one, does not.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._versions: dict[Key, str] = {}
        self._told: dict[Key, Assumable] = {}

    def __len__(self) -> int:
        """Return of how many objects something is assumed."""
        return len(self._told)

    def told(self, key: Key) -> Told | None:
        """Return an object as the API server has it; None if there is none."""
        item = self._told.get(key) or self._in_cluster(key)
        return None if item is None else Told(item, self._versions.get(key, ""))

    def assume(self, item: Assumable) -> str:
        """Have the cluster see an object that is there as it will be; return the version of which that is assumed."""
        key = key_of(item)
        told = self._told.pop(key, None) or self._in_cluster(key)
        if told is not None:
            if item != told:
                self._told[key] = told
            self._cluster.put(item)
        return self._versions.get(key, "")

    def restore(self, key: Key, version: str) -> Event | None:
        """Take back what was assumed of a version; return what that changes, None if it is settled already."""
        told = self._told.get(key)
        if told is None or self._versions.get(key, "") != version:
            return None
        del self._told[key]
        assumed = self._in_cluster(key)
        self._cluster.put(told)
        uid = told.metadata.uid
        return Event("MODIFIED", *key, uid, told, old=assumed, changed=True, version=version)

    def hear(self, event: Event) -> bool:
        """Take note of an event before the cluster does; False if what is assumed outlives it.

        Otherwise nothing is assumed any more, and ``event.old`` is what was told before.
        """
        key = (event.kind, event.namespace, event.name)
        if event.type == "DELETED":
            self._versions.pop(key, None)
        else:
            is_news = key not in self._told or _is_newer(event.version, self._versions.get(key, ""))
            if event.item is None or not is_news:
                return False
            self._versions[key] = event.version
        told = self._told.pop(key, None)
        if told is not None:
            event.old = told
        return True

    def _in_cluster(self, key: Key) -> Assumable | None:
        kind, namespace, name = key
        item: Assumable | None = self._cluster.objects.by_kind()[kind].get(namespace, name)
        return item


def is_older(version: str, than: str) -> bool:
    """Tell whether a resource version is known to be older than another."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


def _is_newer(version: str, than: str) -> bool:
    return version != than and not is_older(version, than)
