"""The settings, their types and their defaults. Knows nothing of files and variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from berth.config.durations import format_duration, parse_duration
from berth.config.priorities import (
    ADD_PRIORITIES,
    DEFAULT_WEIGHT,
    OPTIONAL_ADD_PRIORITIES,
    REMOVE_PRIORITIES,
)

_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expected:
    """In an annotation: what a person should write here."""

    text: str


@dataclass(frozen=True, slots=True)
class KnownNames:
    """In an annotation of a mapping: the names that may stand in it."""

    names: tuple[str, ...]


def _whole_number(value: object) -> object:
    # Pydantic alone would also take '1_000', ' 7 ', 7.0 and True.
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(value)


def _duration(value: object) -> timedelta:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, timedelta) and value >= timedelta(0):
        return value
    raise ValueError(value)


def _path(value: object) -> object:
    if value == "":
        raise ValueError(value)
    return value


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str | Path) else value


_A_DURATION = "a duration such as 15m, 1h30m or 500ms"

Duration = Annotated[timedelta, BeforeValidator(_duration), Expected(_A_DURATION)]
PositiveDuration = Annotated[
    timedelta, Field(gt=timedelta(0)), BeforeValidator(_duration), Expected(f"{_A_DURATION}, more than 0")
]
Weight = Annotated[
    int,
    Field(ge=0, le=2**31 - 1),
    BeforeValidator(_whole_number),
    Expected("a whole number from 0 to 2147483647"),
]
Percentage = Annotated[
    int,
    Field(ge=0, le=100),
    BeforeValidator(_whole_number),
    Expected("a whole number from 0 to 100"),
]
Port = Annotated[
    int,
    Field(ge=0, le=65535),
    BeforeValidator(_whole_number),
    Expected("a whole number from 0 to 65535"),
]
Count = Annotated[
    int,
    Field(ge=1, le=2**31 - 1),
    BeforeValidator(_whole_number),
    Expected("a whole number from 1 to 2147483647"),
]
Seed = Annotated[
    int,
    Field(ge=0, le=2**63 - 1),
    BeforeValidator(_whole_number),
    Expected("a whole number from 0 to 2^63 - 1"),
]
Release = Annotated[Literal["1.13", "1.36"], Expected("'1.13' or '1.36'")]
TieRule = Annotated[Literal["round-robin", "random", "name"], Expected("round-robin, random or name")]
Unschedulable = Annotated[Literal["fail", "pending"], Expected("fail or pending")]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], Expected("debug, info, warning or error")]
Switch = Annotated[bool, Expected("true or false")]
AddWeights = Annotated[Mapping[str, Weight], KnownNames(ADD_PRIORITIES + OPTIONAL_ADD_PRIORITIES)]
RemoveWeights = Annotated[Mapping[str, Weight], KnownNames(REMOVE_PRIORITIES)]
Text = Annotated[str, Field(min_length=1), Expected("some text")]
FilePath = Annotated[Path, BeforeValidator(_path), Expected("a path")]
FilePaths = Annotated[
    tuple[FilePath, ...], BeforeValidator(_one_or_many), Expected("a path or a list of paths")
]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class ModuleSettings(_Group):
    """How pods are added and removed."""

    release: Release = Field(
        default="1.13", description="The Kubernetes release whose arithmetic holds: 1.13 or 1.36"
    )
    add_weights: AddWeights = Field(
        default=dict.fromkeys(ADD_PRIORITIES, DEFAULT_WEIGHT),
        description="Weight of this priority for additions",
    )
    remove_weights: RemoveWeights = Field(
        default=dict.fromkeys(REMOVE_PRIORITIES, DEFAULT_WEIGHT),
        description="Weight of this priority for removals",
    )
    hard_pod_affinity_weight: Percentage = Field(
        default=1,
        description="What a required pod affinity term of an existing pod counts in InterPodAffinityPriority",
    )
    ties: TieRule = Field(
        default="round-robin", description="Which of the nodes with the highest total is taken"
    )
    seed: Seed = Field(default=0, description="The seed of `ties: random`")
    round_interval: Duration = Field(
        default=timedelta(seconds=1),
        description="No round starts sooner than this after the start of the last",
    )
    max_number: Count = Field(default=10_000, description="The most pods that one request may add or remove")
    on_unschedulable: Unschedulable = Field(
        default="fail",
        description="What an addition does that fits nowhere: nothing, or leave a pod pending",
    )
    respect_pod_disruption_budgets: Switch = Field(
        default=False,
        description="Whether planned removals heed PodDisruptionBudgets, as evictions always do",
    )


class ForecastSettings(_Group):
    """The load that is forecast."""

    file: FilePath | None = Field(
        default=None, description="Forecasts of nodes and of services' pods: JSON, JSON lines or CSV"
    )
    horizon: PositiveDuration = Field(
        default=timedelta(minutes=15), description="How far ahead the load counts"
    )
    max_age: Duration = Field(
        default=timedelta(minutes=30), description="A forecast issued longer ago than this counts for nothing"
    )
    max_load_age: Duration = Field(
        default=timedelta(minutes=5), description="A current load older than this counts for nothing"
    )


class LoadSettings(_Group):
    """The load that is measured."""

    file: FilePath | None = Field(default=None, description="Current loads of nodes: JSON, JSON lines or CSV")


class ProfilesSettings(_Group):
    """What services are hungry for."""

    file: FilePath | None = Field(default=None, description="Profiles of services: JSON, JSON lines or CSV")


class ServerSettings(_Group):
    """Where the service listens."""

    host: Text = Field(default="127.0.0.1", description="The address to listen on")
    port: Port = Field(default=8080, description="The port to listen on; 0 takes a free one")
    max_body_bytes: Count = Field(default=1024 * 1024, description="The largest request body")


class StoreSettings(_Group):
    """Where requests and rounds are kept."""

    path: FilePath = Field(
        default=Path("berth.db"), description="The SQLite file with the queue and the rounds"
    )
    keep_rounds: Count = Field(default=1000, description="How many rounds are kept")


class SnapshotSettings(_Group):
    """The cluster, where it is read from files."""

    paths: FilePaths = Field(
        default=(), description="Files and folders as `kubectl get -o json|yaml` writes them"
    )
    lenient: Switch = Field(
        default=False, description="Skip broken objects with a warning instead of stopping"
    )


class LogSettings(_Group):
    """What is told while it runs."""

    level: LogLevel = Field(default="info", description="The least important messages that are shown")


class Settings(_Group):
    """All settings."""

    module: ModuleSettings = ModuleSettings()
    forecast: ForecastSettings = ForecastSettings()
    load: LoadSettings = LoadSettings()
    profiles: ProfilesSettings = ProfilesSettings()
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    snapshot: SnapshotSettings = SnapshotSettings()
    log: LogSettings = LogSettings()


def setting_text(value: object) -> str:
    """A setting's value as one would write it in ``berth.yaml``; empty where there is none."""
    match value:
        case None | ():
            return ""
        case timedelta():
            return format_duration(value)
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value)
