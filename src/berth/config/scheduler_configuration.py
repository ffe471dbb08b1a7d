"""KubeSchedulerConfiguration (v1) of kube-scheduler 1.36: read, checked as upstream, made profiles by scheduler name."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from berth.config.configured import DEFAULT_SCHEDULER, Configured
from berth.config.document import At, read_document
from berth.config.extenders import extender_notes, read_extenders
from berth.config.mistakes import ConfigError
from berth.config.plugin_arguments import (
    API_VERSION,
    CPU_AND_MEMORY,
    STRATEGIES,
    Arguments,
    read_plugin_config,
)
from berth.config.plugin_sets import (
    ALL,
    EMPTY,
    MULTI_POINT,
    Entry,
    PluginSet,
    Sets,
    expand,
    merge,
    read_plugin_sets,
    weights,
)
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.releases.extension_points import POINTS, default_multi_point
from berth.releases.release import Options, RatioShape, Release

KIND = "KubeSchedulerConfiguration"
NOT_YET = "not available yet"
_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_FIELDS = (
    "kind", "apiVersion", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
    "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "profiles", "extenders", "delayCacheUntilActive",
)  # fmt: skip
_LEADER_FIELDS = (
    "leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock", "resourceName",
    "resourceNamespace",
)  # fmt: skip
_CONNECTION_FIELDS = ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")
_PROFILE_FIELDS = ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig")
_WITHOUT_EFFECT = (
    "parallelism", "leaderElection", "clientConnection", "enableProfiling", "enableContentionProfiling",
    "podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive",
)  # fmt: skip
_DECIDING = ("filter", "score", MULTI_POINT)


def load_scheduler_configuration(path: Path, release: Release, options: Options | None = None) -> Configured:
    """Read a KubeSchedulerConfiguration file, YAML or JSON.

    Parameters
    ----------
    options : Options, optional
        Feature gates.

    Raises
    ------
    ConfigError
        With every mistake of the file, and what it asks for that is not available yet.
    """
    return read_scheduler_configuration(read_document(path), release, options)


def read_scheduler_configuration(
    document: At, release: Release, options: Options | None = None
) -> Configured:
    """Read a KubeSchedulerConfiguration.

    Raises
    ------
    ConfigError
        With all its mistakes.
    """
    reader = _Reader(release, options or Options())
    configured = reader.read(document)
    if document.mistakes:
        raise ConfigError(document.mistakes)
    return configured


@dataclass(slots=True)
class _Reader:
    release: Release
    options: Options
    notes: list[str] = field(default_factory=list)

    def read(self, document: At) -> Configured:
        fields = document.fields(_FIELDS, f"field of a {KIND}")
        if fields["kind"].text() != KIND:
            fields["kind"].wrong(f"kind: {KIND}")
        if fields["apiVersion"].text() != API_VERSION:
            fields["apiVersion"].wrong(f"apiVersion: {API_VERSION}")
        initial, longest = self._read_others(fields)
        profiles = self._profiles(fields["profiles"])
        extenders = read_extenders(fields["extenders"])
        self.notes += extender_notes(extenders)
        return Configured(profiles, tuple(self.notes), extenders, initial, longest)

    def _read_others(self, fields: Mapping[str, At]) -> tuple[int, int]:
        """Check what has no effect on decisions; return the first and the longest wait of pods that have failed."""
        fields["parallelism"].integer(16, 1, _INT32, "a whole number above 0")
        initial = fields["podInitialBackoffSeconds"].integer(1, 1, _INT64, "a number of seconds above 0")
        at_most = fields["podMaxBackoffSeconds"]
        longest = at_most.integer(10, 0, _INT64, "a number of seconds")
        if longest < initial:
            at_most.wrong(f"at least podInitialBackoffSeconds, which is {initial}")
        leader = fields["leaderElection"].fields(_LEADER_FIELDS, "field of leaderElection")
        elects = leader["leaderElect"].boolean() or not leader["leaderElect"].given
        if elects and leader["resourceLock"].text() not in ("", "leases"):
            leader["resourceLock"].wrong("leases")
        connection = fields["clientConnection"].fields(_CONNECTION_FIELDS, "field of clientConnection")
        connection["burst"].integer(0, 0, _INT32, "a whole number, 0 or more")
        for name in ("enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"):
            fields[name].boolean()
        self._percentage(fields["percentageOfNodesToScore"])
        idle = [name for name in _WITHOUT_EFFECT if fields[name].given]
        if idle:
            self.notes.append(f"accepted, without effect on decisions: {', '.join(idle)}")
        return initial, longest

    def _percentage(self, at: At) -> None:
        if at.given:
            at.integer(0, 0, 100, "a percentage from 0 to 100")
            self.notes.append(f"{at.path} is ignored: every node is scored")

    def _profiles(self, at: At) -> dict[str, Profile]:
        items = list(at.items("profiles"))
        if not items:
            missing = At("profiles[0]", at.source, None, at.mistakes)
            return {DEFAULT_SCHEDULER: self._profile(missing.fields(_PROFILE_FIELDS))}
        profiles: dict[str, Profile] = {}
        for item in items:
            fields = item.fields(_PROFILE_FIELDS, "field of a profile")
            name = fields["schedulerName"].text("the name of a scheduler", required=len(items) > 1)
            if fields["schedulerName"].given and not name and len(items) == 1:
                fields["schedulerName"].wrong("the name of a scheduler")
            name = name or DEFAULT_SCHEDULER
            if name in profiles and fields["schedulerName"].given:
                fields["schedulerName"].wrong("a name that no other profile has")
            self._percentage(fields["percentageOfNodesToScore"])
            profiles[name] = self._profile(fields)
        return profiles

    def _profile(self, fields: Mapping[str, At]) -> Profile:
        at = fields["plugins"]
        n_before = len(at.mistakes)
        custom = read_plugin_sets(at)
        default = tuple(Entry(*entry) for entry in default_multi_point(self.options.feature_gates))
        sets: Sets = {
            point: merge(PluginSet(default) if point == MULTI_POINT else EMPTY, custom.get(point, EMPTY))
            for point in (*POINTS, MULTI_POINT)
        }
        arguments = read_plugin_config(fields["pluginConfig"], self.options.feature_gates, self.notes)
        if len(at.mistakes) > n_before:
            return Profile((), ())
        self._check_points(at, custom, sets)
        named = frozenset(entry.name for plugins in custom.values() for entry in plugins.enabled)
        build = _Build(self.release, self.options, arguments, at, named)
        profile = build.profile(sets)
        if build.missing:
            missing = ", ".join(dict.fromkeys(build.missing))
            self.notes.append(f"{NOT_YET} for {self.release.name}, and not asked: {missing}")
        return profile

    def _check_points(self, at: At, custom: Sets, sets: Sets) -> None:
        """Check what holds over the extension points together."""
        if len(expand(sets, "queueSort")) != 1:
            at.wrong("exactly one plugin at queueSort", show=False)
        if not expand(sets, "bind"):
            at.wrong("at least one plugin at bind", show=False)
        if len(expand(sets, "placementGenerate")) > 1:
            at.wrong("at most one plugin at placementGenerate", show=False)
        for before, main in (("preFilter", "filter"), ("preScore", "score")):
            both = POINTS[before] & POINTS[main]
            apart = sorted(both & (set(expand(sets, before)) ^ set(expand(sets, main))))
            if apart:
                which = f"{', '.join(apart)}: one without the other is {NOT_YET}"
                at.wrong(f"the same plugins at {before} and {main}, but for {which}", show=False)
        idle = [point for point in custom if point not in _DECIDING and not point.startswith("pre")]
        if idle:
            self.notes.append(f"{at.path}: accepted, without effect on decisions: {', '.join(idle)}")
        disabled = custom.get(MULTI_POINT, EMPTY).disabled
        if ALL not in disabled and "DefaultPreemption" in disabled:
            self.notes.append(f"{at.path}: DefaultPreemption is no part of deciding where a pod fits")


@dataclass(frozen=True, slots=True)
class _Build:
    """Makes the plugins of one profile.

    Attributes
    ----------
    named
        The plugins that the profile itself enables.
    missing
        Those of the default profile for which there is no plugin yet.
    """

    release: Release
    options: Options
    arguments: Arguments
    at: At
    named: frozenset[str]
    missing: list[str] = field(default_factory=list)

    def profile(self, sets: Sets) -> Profile:
        filters, scores = expand(sets, "filter"), expand(sets, "score")
        weight_of = weights(sets)
        if sum(weight_of[name] for name in scores) * self.release.maximum > _INT64:
            self.at.wrong(f"weights that sum to at most {_INT64 // self.release.maximum}", show=False)
        options = replace(
            self.options,
            hard_pod_affinity_weight=self.arguments.hard_pod_affinity_weight,
            ratio=RatioShape(self.arguments.shape, self.arguments.fit_resources)
            if self.arguments.shape
            else None,
        )
        made_filters, made_scores = [], []
        for name in filters:
            factory = self.release.filters.get(name)
            if factory is None:
                self._miss(name, f"without {name} at filter, which is {NOT_YET}")
                continue
            made_filters.append(NamedFilter(name, self._with(name, factory(options), self._of_filter(name))))
        # Filters that are not upstream's keep pods with unsupported wishes from passing: no file takes them out.
        guards = self.release.default_filters(options) - POINTS["filter"]
        made_filters += [
            NamedFilter(name, make(options)) for name, make in self.release.filters.items() if name in guards
        ]
        for name in scores:
            score = self.release.scores.get(self._score_name(name))
            plugin = score(options) if score else None
            if plugin is None:
                self._miss(name, f"without {self._score_name(name)} at score, which is {NOT_YET}")
                continue
            made = self._with(name, plugin, self._of_score(name))
            made_scores.append(WeightedScore(name, made, weight_of[name]))
        return Profile(tuple(made_filters), tuple(made_scores))

    def _score_name(self, name: str) -> str:
        """Return the name in the release's table: of NodeResourcesFit the strategy's."""
        if name != "NodeResourcesFit" or self.arguments.strategy in (STRATEGIES[0], ""):
            return name
        return f"{name}/{self.arguments.strategy}"

    def _of_filter(self, name: str) -> dict[str, object]:
        """Return what is not the default, as fields of the plugin."""
        given = self.arguments
        if name == "NodeResourcesFit" and (given.ignored_resources or given.ignored_resource_groups):
            return {"ignored": frozenset((*given.ignored_resources, *given.ignored_resource_groups))}
        if name == "NodeAffinity" and given.added_affinity and given.added_affinity.required:
            return {"added": given.added_affinity.required}
        return self._of_spread() if name == "PodTopologySpread" else {}

    def _of_score(self, name: str) -> dict[str, object]:
        given = self.arguments
        if name == "NodeResourcesFit" and given.fit_resources != CPU_AND_MEMORY:
            return {"resources": given.fit_resources}
        if name == "NodeResourcesBalancedAllocation" and given.balanced_resources != CPU_AND_MEMORY:
            return {"resources": given.balanced_resources}
        if name == "InterPodAffinity" and given.ignore_preferred_terms:
            return {"ignores_existing_preferences": True}
        if name == "NodeAffinity" and given.added_affinity and given.added_affinity.preferred:
            return {"added": given.added_affinity.preferred}
        return self._of_spread() if name == "PodTopologySpread" else {}

    def _of_spread(self) -> dict[str, object]:
        if not self.arguments.list_defaulting:
            return {}
        return {"default_constraints": self.arguments.default_constraints}

    def _with(self, name: str, plugin: Any, fields: dict[str, object]) -> Any:
        """Return the plugin with these fields; refuse those that it does not have."""
        if not fields:
            return plugin
        has = {one.name for one in dataclasses.fields(plugin)} if dataclasses.is_dataclass(plugin) else set()
        lacks = sorted(set(fields) - has)
        if lacks:
            self._refuse(name, f"no {', '.join(lacks)}, which {name} does not heed yet ({NOT_YET})")
            return plugin
        return dataclasses.replace(plugin, **fields)

    def _miss(self, name: str, expected: str) -> None:
        """Refuse a plugin that was asked for; of the default's, remember that it is missing."""
        if name in self.named or name in self.arguments.places:
            self._refuse(name, expected)
        else:
            self.missing.append(name)

    def _refuse(self, name: str, expected: str) -> None:
        at = self.arguments.places.get(name, self.at)
        at.wrong(expected, show=False)
