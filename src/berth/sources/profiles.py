"""Profiles of services, from files."""

from collections.abc import Iterable
from pathlib import Path

from berth.module.loads import ServiceName
from berth.module.profile import Intensity, ServiceProfile
from berth.sources.fields import Fields
from berth.sources.mistakes import Mistakes
from berth.sources.rows import Row, read_rows

PROFILE_FIELDS = ("namespace", "service", "intensity", "cpu", "memory")


def read_profiles(path: Path) -> dict[ServiceName, ServiceProfile]:
    """The profiles of a file by service, of rows with ``namespace``, ``service`` and what else is known.

    Raises
    ------
    SourceError
        With all mistakes of the file; two profiles of one service are one.
    """
    mistakes = Mistakes(str(path))
    profiles = profiles_of(read_rows(path, mistakes), mistakes)
    mistakes.raise_any()
    return profiles


def profiles_of(rows: Iterable[Row], mistakes: Mistakes) -> dict[ServiceName, ServiceProfile]:
    """The profiles of these rows by service; what is wrong with them is noted."""
    first_places: dict[ServiceName, str] = {}
    profiles: dict[ServiceName, ServiceProfile] = {}
    for row in rows:
        fields = Fields(row, mistakes)
        profile = _profile(fields)
        if profile is None:
            continue
        if profile.name in first_places:
            fields.wrong("service", f"one profile a service: {first_places[profile.name]} has it already")
        first_places.setdefault(profile.name, row.place)
        profiles[profile.name] = profile
    return profiles


def _profile(fields: Fields) -> ServiceProfile | None:
    fields.only(PROFILE_FIELDS)
    name, intensity = fields.service(), _intensity(fields)
    milli_cpu, memory_bytes = fields.whole_milli_cpu(), fields.whole_memory_bytes()
    return None if name is None else ServiceProfile(name, intensity, milli_cpu, memory_bytes)


def _intensity(fields: Fields) -> Intensity | None:
    text = fields.text("intensity") if fields.has("intensity") else None
    if text is None:
        return None
    try:
        return Intensity(text)
    except ValueError:
        fields.wrong("intensity", "cpu or memory")
        return None
