"""1.7 to 1.17: predicates and priorities under the names of the time."""

from collections.abc import Mapping

from berth.releases.legacy_1_7 import RELEASE_1_7
from berth.releases.legacy_1_10 import RELEASE_1_10
from berth.releases.legacy_1_13 import RELEASE_1_13
from berth.releases.legacy_1_17 import RELEASE_1_17
from berth.releases.release import Release

LEGACY: Mapping[str, Release] = {
    release.name: release for release in (RELEASE_1_7, RELEASE_1_10, RELEASE_1_13, RELEASE_1_17)
}
