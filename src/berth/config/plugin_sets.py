"""Plugins enabled and disabled per extension point, merged as kube-scheduler 1.36 merges them.

Source: ``mergePluginSet`` of ``apis/config/v1`` and ``expandMultiPointPlugins`` of ``framework/runtime``. Knows nothing of
what the plugins do.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.config.document import At
from berth.config.mistakes import known_name
from berth.releases.extension_points import PLUGINS, POINTS

MULTI_POINT = "multiPoint"
ALL = "*"
_INT32 = 2**31 - 1
_REMOVED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")


@dataclass(frozen=True, slots=True)
class Entry:
    """A plugin that is enabled; a weight of 0 means that none is given."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is enabled at an extension point, in order, and what is disabled there."""

    enabled: tuple[Entry, ...] = ()
    disabled: frozenset[str] = frozenset()


EMPTY = PluginSet()
Sets = Mapping[str, PluginSet]


def read_plugin_sets(at: At) -> Sets:
    """Read ``plugins`` of a profile: extension point to what is enabled and disabled; note every mistake."""
    points = at.fields((*POINTS, MULTI_POINT), "extension point")
    return {point: _read_set(points[point], point) for point in points if points[point].given}


def _read_set(at: At, point: str) -> PluginSet:
    fields = at.fields(("enabled", "disabled"), "field of an extension point")
    enabled: list[Entry] = []
    for item in fields["enabled"].items("plugins"):
        entry, name_at = _entry(item)
        if entry is None:
            continue
        if entry.name == ALL:
            name_at.wrong("the name of a plugin: only disabled takes *")
        elif entry.name in _REMOVED:
            name_at.wrong("a plugin that 1.36 has: NodeVolumeLimits counts these volumes now")
        elif entry.name not in PLUGINS:
            name_at.wrong(known_name(entry.name, PLUGINS, "plugin"))
        elif point != MULTI_POINT and entry.name not in POINTS[point]:
            having = ", ".join(other for other, plugins in POINTS.items() if entry.name in plugins)
            name_at.wrong(f"a plugin with the extension point {point}; this one has {having}")
        elif any(entry.name == other.name for other in enabled):
            name_at.wrong("each plugin once at an extension point")
        else:
            enabled.append(entry)
    disabled = set()
    for item in fields["disabled"].items("plugins"):
        entry, name_at = _entry(item)
        if entry is None:
            continue
        if entry.name not in (ALL, *PLUGINS, *_REMOVED):
            name_at.wrong(known_name(entry.name, PLUGINS, "plugin"))
        disabled.add(entry.name)
    return PluginSet(tuple(enabled), frozenset(disabled))


def _entry(at: At) -> tuple[Entry | None, At]:
    fields = at.fields(("name", "weight"), "field of a plugin")
    name = fields["name"].text("the name of a plugin", required=True)
    weight = fields["weight"].integer(0, 0, _INT32, f"a weight from 1 to {_INT32} (0: 1)")
    return (Entry(name, weight) if name else None), fields["name"]


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge what a profile says into the default: what it configures anew keeps its place, the rest is added."""
    disabled = default.disabled | custom.disabled
    configured = {entry.name: entry for entry in custom.enabled}
    kept: list[Entry] = []
    if ALL not in disabled:
        kept = [configured.get(e.name, e) for e in default.enabled if e.name not in disabled]
    there = {entry.name for entry in kept}
    added = [entry for entry in custom.enabled if entry.name not in there]
    return PluginSet((*kept, *added), disabled)


def expand(sets: Sets, point: str) -> list[str]:
    """Return the plugins that run at an extension point, in order, ``multiPoint`` included.

    First those of ``multiPoint`` that the point itself enables too, in the point's order; then the others of
    ``multiPoint``; then the others of the point.
    """
    own, everywhere = sets.get(point, EMPTY), sets.get(MULTI_POINT, EMPTY)
    names = [entry.name for entry in own.enabled]
    if ALL in own.disabled:
        return names
    spread = [e.name for e in everywhere.enabled if e.name in POINTS[point] and e.name not in own.disabled]
    return [
        *(name for name in names if name in spread),
        *(name for name in spread if name not in names),
        *(name for name in names if name not in spread),
    ]


def weights(sets: Sets) -> dict[str, int]:
    """Return the weight of every score plugin; what the extension point ``score`` says comes before ``multiPoint``."""
    found: dict[str, int] = {}
    for point in ("score", MULTI_POINT):
        for entry in sets.get(point, EMPTY).enabled:
            if entry.name in POINTS["score"]:
                found.setdefault(entry.name, entry.weight or 1)
    return found
