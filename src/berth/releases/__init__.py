"""Which plugins, order, weights and wording a release has."""

from collections.abc import Mapping

from berth.releases.legacy import LEGACY
from berth.releases.modern import MODERN
from berth.releases.release import Release

RELEASES: Mapping[str, Release] = {**LEGACY, **MODERN}
"""Every release that answers for itself, by its short name."""
