"""Forecasts and current loads: from files, and the seam for sources that measure or forecast live."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from berth.module.loads import ForecastTable, LoadTable, Sample, Subject
from berth.sources.fields import Fields
from berth.sources.mistakes import Mistakes
from berth.sources.rows import read_rows

FORECAST_FIELDS = ("node", "namespace", "service", "time", "cpu", "memory", "issued")
LOAD_FIELDS = ("node", "time", "cpu", "memory")


class LoadSource(Protocol):
    """Where current loads come from."""

    def loads(self, now: datetime) -> LoadTable:
        """What is known of the nodes' loads at ``now``; it may hold more than that."""
        ...


class ForecastSource(Protocol):
    """Where forecasts come from."""

    def forecasts(self, now: datetime) -> ForecastTable:
        """What is forecast at ``now``; it may hold more than that."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLoads:
    """Loads that were read once."""

    table: LoadTable

    def loads(self, now: datetime) -> LoadTable:
        """All of them: who asks looks up what holds at ``now``."""
        del now
        return self.table


@dataclass(frozen=True, slots=True, eq=False)
class RecordedForecasts:
    """Forecasts that were read once."""

    table: ForecastTable

    def forecasts(self, now: datetime) -> ForecastTable:
        """All of them: who asks looks up what holds at ``now``."""
        del now
        return self.table


def read_forecasts(path: Path) -> ForecastTable:
    """The forecasts of a file.

    A row has ``node``, or ``namespace`` and ``service`` for one pod of a service; ``time``,
    ``issued``, ``cpu`` in cores and ``memory`` in bytes.

    Raises
    ------
    SourceError
        With all mistakes of the file.
    """
    mistakes = Mistakes(str(path))
    samples = [_forecast(Fields(row, mistakes)) for row in read_rows(path, mistakes)]
    mistakes.raise_any()
    return ForecastTable.of(sample for sample in samples if sample is not None)


def read_loads(path: Path) -> LoadTable:
    """The current loads of a file, of rows with ``node``, ``time``, ``cpu`` in cores and ``memory`` in bytes.

    Raises
    ------
    SourceError
        With all mistakes of the file.
    """
    mistakes = Mistakes(str(path))
    samples = [_load(Fields(row, mistakes)) for row in read_rows(path, mistakes)]
    mistakes.raise_any()
    return LoadTable.of(sample for sample in samples if sample is not None)


def _forecast(fields: Fields) -> Sample | None:
    fields.only(FORECAST_FIELDS)
    return _sample(fields, _subject(fields), fields.time_us("time"), fields.time_us("issued"))


def _load(fields: Fields) -> Sample | None:
    fields.only(LOAD_FIELDS)
    time = fields.time_us("time")
    return _sample(fields, fields.text("node"), time, time)


def _subject(fields: Fields) -> Subject | None:
    of_service = fields.has("namespace") or fields.has("service")
    if fields.has("node") and of_service:
        fields.wrong("node", "either a node, or a namespace and a service")
        return None
    if of_service:
        return fields.service()
    if fields.has("node"):
        return fields.text("node")
    fields.wrong("", "a node, or a namespace and a service")
    return None


def _sample(fields: Fields, subject: Subject | None, time: int | None, issued: int | None) -> Sample | None:
    milli_cpu, memory_bytes = fields.load_milli_cpu(), fields.load_memory_bytes()
    if subject is None or time is None or issued is None or milli_cpu is None or memory_bytes is None:
        return None
    return Sample(subject, time, issued, milli_cpu, memory_bytes)
