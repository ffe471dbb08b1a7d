"""What a scheduler's configuration comes to."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.config.extenders import Extender
from berth.framework.profile import Profile

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Configured:
    """Profiles by the name that pods give in ``schedulerName``.

    Attributes
    ----------
    notes
        What a person should know: what was accepted and has no effect here, and what does not do what it seems to.
    initial_backoff_s, longest_backoff_s : int
        How long a pod that has failed waits at first, and at most. [s]
    """

    profiles: Mapping[str, Profile]
    notes: tuple[str, ...] = ()
    extenders: tuple[Extender, ...] = ()
    initial_backoff_s: int = 1
    longest_backoff_s: int = 10

    def of(self, scheduler_name: str) -> Profile | None:
        """Return the profile for a pod's scheduler name; of a single one any name's, None if there is none."""
        if len(self.profiles) == 1:
            return next(iter(self.profiles.values()))
        return self.profiles.get(scheduler_name or DEFAULT_SCHEDULER)
