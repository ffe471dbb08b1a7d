"""From a release's names and weights to a profile: the algorithm providers, and today's default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.errors import InputError
from berth.framework.plugin import FilterPlugin, ScorePlugin
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.releases.release import Options, Release

DEFAULT_PROVIDER = "DefaultProvider"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which plugins of a release decide.

    Attributes
    ----------
    filters : dict of name to plugins
        What is asked under a name, several one after the other; the order is the release's, then the dictionary's.
    scores : dict of name to plugin and weight
        None where the release leaves a score out.
    """

    filters: Mapping[str, tuple[FilterPlugin[Any], ...]]
    scores: Mapping[str, tuple[ScorePlugin[Any] | None, int]]


def provider_names(
    release: Release, options: Options, provider: str
) -> tuple[frozenset[str], dict[str, int]]:
    """Return the predicates, and the priorities with their weights, of an algorithm provider.

    Raises
    ------
    InputError
        There is no such provider.
    """
    if provider == DEFAULT_PROVIDER:
        return release.default_filters(options), dict(release.default_scores(options))
    if provider not in release.providers:
        known = dict.fromkeys((DEFAULT_PROVIDER, *release.providers))
        raise InputError("provider", provider, f"one of {release.name}'s: {', '.join(known)}")
    chosen = release.providers[provider]
    return chosen.filters(options), chosen.scores(options)


def provider_profile(release: Release, options: Options, provider: str = DEFAULT_PROVIDER) -> Profile:
    """Make the profile of an algorithm provider; of 1.36 there is only the default.

    Raises
    ------
    InputError
        There is no such provider.
    """
    filters, weights = provider_names(release, options, provider)
    return profile_of(release, options, choose(release, options, filters, weights))


def missing_names(release: Release, filters: Iterable[str], scores: Iterable[str]) -> list[str]:
    """Return the names for which there is no plugin yet."""
    absent = [name for name in filters if name not in release.filters]
    return sorted(absent) + sorted(name for name in scores if name not in release.scores)


def choose(release: Release, options: Options, filters: Iterable[str], weights: Mapping[str, int]) -> Chosen:
    """Make the plugins that a release has under these names; names without one are left out."""
    table = {name: release.aliases.get(name, name) for name in filters}
    return Chosen(
        {name: (release.filters[table[name]](options),) for name in table if table[name] in release.filters},
        {name: (release.scores[name](options), w) for name, w in weights.items() if name in release.scores},
    )


def profile_of(
    release: Release, options: Options, chosen: Chosen, *, always_check_all: bool = False
) -> Profile:
    """Put the chosen plugins into the release's order."""
    order = [name for name in release.filters if name in chosen.filters]
    order += [name for name in chosen.filters if name not in release.filters]
    scores = [name for name in release.scores if name in chosen.scores]
    scores += [name for name in chosen.scores if name not in release.scores]
    weighted = [(name, *chosen.scores[name]) for name in scores]
    return Profile(
        filters=tuple(NamedFilter(name, plugin) for name in order for plugin in chosen.filters[name]),
        scores=tuple(WeightedScore(name, plugin, w) for name, plugin, w in weighted if plugin is not None),
        always_check_all=always_check_all or release.asks_all,
        reported=release.reported,
        checks_claims=release.checks_claims,
        drops=release.drops,
    )
