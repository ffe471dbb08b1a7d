"""From a release's names and weights to a profile: the algorithm providers, and today's default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.errors import InputError
from berth.framework.plugin import FilterPlugin, ScorePlugin
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.releases.registered import (
    AUTOSCALER_PROVIDER,
    DEFAULT_PROVIDER,
    GENERAL_PARTS,
    PROVIDERS,
    registered,
)
from berth.releases.release import Options, Release

MODERN = "1.36"
"""The release that has plugins and a KubeSchedulerConfiguration in place of predicates, priorities and a Policy."""


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
    if provider not in PROVIDERS or (release.name == MODERN and provider != DEFAULT_PROVIDER):
        known = (DEFAULT_PROVIDER,) if release.name == MODERN else PROVIDERS
        raise InputError("provider", provider, f"one of {release.name}'s: {', '.join(known)}")
    weights = dict(release.default_scores(options))
    if provider == AUTOSCALER_PROVIDER and "LeastRequestedPriority" in weights:
        del weights["LeastRequestedPriority"]
        weights["MostRequestedPriority"] = 1
    return release.default_filters(options), weights


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
    return Chosen(
        {name: (release.filters[name](options),) for name in filters if name in release.filters},
        {name: (release.scores[name](options), w) for name, w in weights.items() if name in release.scores},
    )


def profile_of(release: Release, options: Options, chosen: Chosen) -> Profile:
    """Put the chosen plugins into the release's order."""
    order = [name for name in release.filters if name in chosen.filters]
    order += [name for name in chosen.filters if name not in release.filters]
    scores = [name for name in release.scores if name in chosen.scores]
    scores += [name for name in chosen.scores if name not in release.scores]
    as_plugins = False
    always_check_all = options.always_check_all
    if release.name != MODERN:
        rules = registered(release.name, options)
        as_plugins = rules.as_plugins
        always_check_all = rules.checks_all or (always_check_all and not as_plugins)
    filters: list[NamedFilter] = []
    for name in order:
        plugins = chosen.filters[name]
        parts = GENERAL_PARTS.get(name, ()) if as_plugins else ()
        if parts and all(part in release.filters for part in parts):
            plugins = tuple(release.filters[part](options) for part in parts)
        filters += [NamedFilter(name, plugin) for plugin in plugins]
    weighted = [(name, *chosen.scores[name]) for name in scores]
    return Profile(
        tuple(filters),
        tuple(WeightedScore(name, plugin, weight) for name, plugin, weight in weighted if plugin is not None),
        always_check_all,
    )
