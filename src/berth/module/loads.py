"""Forecasts and current loads as columns. Knows nothing of where they were read, nor of what time it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntColumn = NDArray[np.int64]
FloatColumn = NDArray[np.float64]
Mask = NDArray[np.bool_]

# What an int64 holds: a larger "load" is a broken number, and sums of smaller ones stay finite.
LARGEST_LOAD = float(2**63)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_us(time: datetime) -> int:
    """Microseconds since 1970 of a time with a zone, exactly."""
    return (time - _EPOCH) // _MICROSECOND


class ServiceName(NamedTuple):
    """A service of a cluster."""

    namespace: str
    service: str


# A node by its name, or a service of whose pods one is meant.
Subject = str | ServiceName


class Sample(NamedTuple):
    """A row of a forecast or a load: whose, when, how much; ``issued`` is ``time`` where it was measured."""

    subject: Subject
    time_us: int
    issued_us: int
    milli_cpu: float
    memory_bytes: float


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of forecasts or loads, in the order in which they were read.

    Attributes
    ----------
    subjects
        Nodes, or services whose values are of one pod, each once.
    subject_id : int64[n_rows]
        Index into ``subjects``.
    time_us, issued_us : int64[n_rows]
        What time the row is about, and when it was said. [microseconds since 1970]
    milli_cpu, memory_bytes : float64[n_rows]
        The load; NaN, infinite, negative and absurdly large values may stand here, see ``usable``.
    """

    subjects: tuple[Subject, ...]
    subject_id: IntColumn
    time_us: IntColumn
    issued_us: IntColumn
    milli_cpu: FloatColumn
    memory_bytes: FloatColumn

    @classmethod
    def of(cls, rows: Iterable[Sample]) -> "Samples":
        """Columns of these rows."""
        ids: dict[Subject, int] = {}
        table = [(ids.setdefault(row.subject, len(ids)), *row[1:]) for row in rows]
        subject_id, time, issued, cpu, memory = zip(*table, strict=True) if table else ((), (), (), (), ())
        return cls(
            subjects=tuple(ids),
            subject_id=np.array(subject_id, dtype=np.int64),
            time_us=np.array(time, dtype=np.int64),
            issued_us=np.array(issued, dtype=np.int64),
            milli_cpu=np.array(cpu, dtype=np.float64),
            memory_bytes=np.array(memory, dtype=np.float64),
        )

    @property
    def usable(self) -> Mask:
        """Which rows count: both values finite, not negative, and below 2^63."""
        cpu, memory = self.milli_cpu, self.memory_bytes
        # NaN compares false, so it is out as well.
        return (cpu >= 0) & (cpu < LARGEST_LOAD) & (memory >= 0) & (memory < LARGEST_LOAD)

    @property
    def n_unusable(self) -> int:
        """How many rows count as not there."""
        return int(np.count_nonzero(~self.usable))


@dataclass(frozen=True, slots=True, eq=False)
class ForecastTable:
    """Forecasts of nodes, and of one pod of a service."""

    of_nodes: Samples
    of_service_pods: Samples

    @classmethod
    def of(cls, rows: Iterable[Sample]) -> "ForecastTable":
        """Columns of these rows, told apart by their subject."""
        node_rows: list[Sample] = []
        service_rows: list[Sample] = []
        for row in rows:
            (node_rows if isinstance(row.subject, str) else service_rows).append(row)
        return cls(Samples.of(node_rows), Samples.of(service_rows))

    @property
    def n_unusable(self) -> int:
        """How many rows count as not there."""
        return self.of_nodes.n_unusable + self.of_service_pods.n_unusable


@dataclass(frozen=True, slots=True, eq=False)
class LoadTable:
    """Measured loads of nodes."""

    of_nodes: Samples

    @classmethod
    def of(cls, rows: Iterable[Sample]) -> "LoadTable":
        """Columns of these rows."""
        return cls(Samples.of(rows))

    @property
    def n_unusable(self) -> int:
        """How many rows count as not there."""
        return self.of_nodes.n_unusable
