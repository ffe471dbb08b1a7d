"""What is known of a service's appetite. Knows nothing of where it was read."""

from dataclasses import dataclass
from enum import StrEnum

from berth.module.loads import ServiceName


class Intensity(StrEnum):
    """The resource that a service is hungry for."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class ServiceProfile:
    """What one pod of a service uses at present; ``None`` is for what is not known.

    Attributes
    ----------
    milli_cpu
        Rounded up. [thousandths of a core]
    memory_bytes
        Rounded up. [bytes]
    """

    name: ServiceName
    intensity: Intensity | None = None
    milli_cpu: int | None = None
    memory_bytes: int | None = None
