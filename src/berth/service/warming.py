"""Loops are compiled in the background while the service starts, so that no round waits for it."""

import logging
import threading
from collections.abc import Iterable
from typing import Any

from berth.config.settings import Settings
from berth.framework.profile import Profile
from berth.releases.module import MODULE_RELEASES, addition_profile
from berth.scheduling.compiled import Group
from berth.scheduling.warming import Exercise, exercises

log = logging.getLogger(__name__)


def warm_up(settings: Settings) -> threading.Thread:
    """Load and compile all loops in a thread; until it is through with one, its twin in Python runs."""
    module = settings.module
    release = MODULE_RELEASES[module.release]
    return warm_up_profile(addition_profile(module.add_weights, module.hard_pod_affinity_weight, release))


def warm_up_profile(profile: Profile) -> threading.Thread:
    """Load and compile all loops that place pods by a profile, likewise."""
    thread = threading.Thread(target=_warm_up, args=(exercises(profile),), name="warm-up", daemon=True)
    thread.start()
    return thread


def _warm_up(groups: Iterable[tuple[Group[Any], Exercise]]) -> None:
    try:
        for group, exercise in groups:
            group.warm_up(exercise)
    except Exception:
        log.warning("loops could not be compiled, Python does without", exc_info=True)
