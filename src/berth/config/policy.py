"""The Policy file (``kind: Policy``) of kube-scheduler up to 1.17: read, checked as upstream, made a profile."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from berth.config.configured import DEFAULT_SCHEDULER, Configured
from berth.config.document import At, read_document
from berth.config.extenders import extender_notes, read_extenders
from berth.config.mistakes import ConfigError, known_name
from berth.config.shapes import read_resources, read_shape
from berth.framework.plugin import FilterPlugin, ScorePlugin
from berth.plugins.node_label import PreferNodeLabels
from berth.releases.profiles import (
    DEFAULT_PROVIDER,
    Chosen,
    choose,
    missing_names,
    profile_of,
    provider_names,
)
from berth.releases.registered import GENERAL_PARTS, Registered, registered
from berth.releases.release import LabelRule, Options, RatioShape, Release

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_MAX_CUSTOM_SCORE = 10
_NAME = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])")
_FIELDS = (
    "kind", "apiVersion", "predicates", "priorities", "extenders", "hardPodAffinitySymmetricWeight",
    "alwaysCheckAllPredicates",
)  # fmt: skip
_PREDICATE_ARGUMENTS = ("serviceAffinity", "labelsPresence")
_RATIO = "requestedToCapacityRatioArguments"
_PRIORITY_ARGUMENTS = ("serviceAntiAffinity", "labelPreference", _RATIO)

# The names that the releases' tables give to what only an argument brings in.
SERVICE_AFFINITY, LABEL_PRESENCE = "CheckServiceAffinity", "CheckNodeLabelPresence"
SERVICE_ANTI_AFFINITY, NODE_LABEL = "ServiceAntiAffinity", "NodeLabel"
RATIO_PRIORITY = "RequestedToCapacityRatioPriority"
# How 1.17 calls them, whatever the Policy does.
_PLUGIN_NAMES = {
    SERVICE_ANTI_AFFINITY: "ServiceAffinity",
    NODE_LABEL: "NodeLabel",
    RATIO_PRIORITY: "RequestedToCapacityRatio",
}
NOT_YET = "not available yet"
KIND = "Policy"


def load_policy(path: Path, release: Release, options: Options | None = None) -> Configured:
    """Read a Policy file, JSON or YAML, for a release.

    Parameters
    ----------
    options : Options, optional
        Feature gates, the volume limit and, if the Policy does not say, the hard pod affinity weight.

    Raises
    ------
    ConfigError
        With every mistake of the file.
    """
    return read_policy(read_document(path), release, options)


def read_policy(document: At, release: Release, options: Options | None = None) -> Configured:
    """Read a Policy.

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
class _Custom:
    """What an argument made: the name in the release's table, the options that make the plugin, the Policy's name."""

    table_name: str
    options: list[Options]
    name: str
    weight: int = 0


@dataclass(slots=True)
class _Reader:
    release: Release
    options: Options
    notes: list[str] = field(default_factory=list)
    always_check_all: bool = False

    @property
    def rules(self) -> Registered:
        return registered(self.release, self.options)

    def read(self, document: At) -> Configured:
        fields = document.fields(_FIELDS, "field of a Policy")
        _check_kind(fields, KIND, ("v1",))
        self._read_options(fields)
        predicates = self._predicates(fields["predicates"])
        priorities = self._priorities(fields["priorities"])
        extenders = read_extenders(fields["extenders"])
        self.notes += extender_notes(extenders)
        if document.mistakes:
            return Configured({})
        profile = profile_of(
            self.release,
            self.options,
            Chosen(predicates, priorities),
            always_check_all=self.always_check_all,
        )
        return Configured({DEFAULT_SCHEDULER: profile}, tuple(self.notes), extenders)

    def _read_options(self, fields: Mapping[str, At]) -> None:
        weight = fields["hardPodAffinitySymmetricWeight"].integer(0, 0, 100, "a weight from 1 to 100 (0: 1)")
        check_all = fields["alwaysCheckAllPredicates"].boolean()
        self.options = replace(
            self.options,
            hard_pod_affinity_weight=weight or self.options.hard_pod_affinity_weight,
        )
        self.always_check_all = check_all and not self.rules.as_plugins
        if check_all and self.rules.as_plugins:
            self.notes.append(
                f"alwaysCheckAllPredicates has no effect in {self.release.name}: its predicates run as plugins, which "
                "stop at the first that fails"
            )

    def _predicates(self, at: At) -> dict[str, tuple[FilterPlugin[Any], ...]]:
        if not at.given:
            names, _ = provider_names(self.release, self.options, DEFAULT_PROVIDER)
            self._note_missing(missing_names(self.release, names, ()))
            return dict(choose(self.release, self.options, sorted(names), {}).filters)
        plain: list[str] = []
        customs: dict[str, _Custom] = {}
        for item in at.items("predicates"):
            fields = item.fields(("name", "argument"), "field of a predicate")
            name = _name(fields["name"])
            if fields["argument"].given:
                self._custom_predicate(name, fields["argument"], customs)
            elif self._is_known(fields["name"], name, self.rules.predicates, customs, "predicate"):
                if name in plain:
                    self.notes.append(f"{fields['name'].path}: {name} stands there twice, and counts once")
                plain.append(name)
                self._check_general(fields["name"], name, plain)
        mandatory = sorted(self.release.mandatory_filters(self.options).difference(plain))
        if at.mistakes:
            return {}
        self._note_missing([name for name in mandatory if name not in self.release.filters])
        chosen = dict(choose(self.release, self.options, [*plain, *mandatory], {}).filters)
        for custom in customs.values():
            make = self.release.filters[custom.table_name]
            chosen[custom.name] = tuple(make(options) for options in custom.options)
        return self._asked(chosen)

    def _is_known(
        self, at: At, name: str, known: frozenset[str], customs: Mapping[str, _Custom], what: str
    ) -> bool:
        """Tell whether a name without an argument is registered, by the release or an entry before; note if not."""
        if not name or name in customs:
            return False
        if name not in known:
            at.wrong(known_name(name, sorted(known), f"{what} of {self.release.name}"))
            return False
        table = self.release.filters if what == "predicate" else self.release.scores
        if self.release.aliases.get(name, name) not in table:
            at.wrong(f"another {what}: this one is {NOT_YET} for {self.release.name}")
            return False
        return True

    def _asked(
        self, chosen: dict[str, tuple[FilterPlugin[Any], ...]]
    ) -> dict[str, tuple[FilterPlugin[Any], ...]]:
        """Leave out what the release never asks: up to 1.17 predicates whose name its list lacks."""
        if self.release.asks_all:
            return chosen
        never = [name for name in chosen if name not in self.release.filters]
        for name in never:
            hint = f"; call it {SERVICE_AFFINITY} or {LABEL_PRESENCE}" if self.rules.keeps_names else ""
            if name in self.rules.unordered:
                hint = "; PodFitsHostPorts is asked"
            self.notes.append(
                f"predicate {name} is never asked: {self.release.name} asks only those of its own list{hint}"
            )
        return {name: plugins for name, plugins in chosen.items() if name not in never}

    def _check_general(self, at: At, name: str, plain: list[str]) -> None:
        if not self.rules.as_plugins:
            return
        for whole, parts in GENERAL_PARTS.items():
            clash = {name, *plain} & set(parts) if name == whole else {name} & set(parts)
            if clash and whole in plain:
                at.wrong(
                    f"{whole} or {', '.join(sorted(clash))}, not both: {self.release.name} refuses to start with a plugin "
                    "that is enabled twice"
                )

    def _custom_predicate(self, name: str, at: At, customs: dict[str, _Custom]) -> None:
        kind, argument = _only_one(at, _PREDICATE_ARGUMENTS, "predicate")
        if argument is None:
            return
        if kind == "serviceAffinity":
            labels = argument.fields(("labels",), "field of serviceAffinity")["labels"].texts("label")
            custom = _Custom(SERVICE_AFFINITY, [replace(self.options, service_affinity_labels=labels)], name)
        else:
            fields = argument.fields(("labels", "presence"), "field of labelsPresence")
            rule = LabelRule(fields["labels"].texts("label"), fields["presence"].boolean())
            custom = _Custom(LABEL_PRESENCE, [replace(self.options, labels_presence=rule)], name)
        if custom.table_name not in self.release.filters:
            argument.wrong(f"another argument: {custom.table_name} is {NOT_YET} for {self.release.name}")
            return
        if self.rules.keeps_names:
            if name in customs:
                self.notes.append(f"{at.path}: {name} stands there twice; the last counts")
            customs[name] = custom
            return
        custom.name = custom.table_name
        earlier = customs.setdefault(custom.name, custom)
        if earlier is custom:
            return
        if kind == "serviceAffinity":
            all_labels = (
                earlier.options[0].service_affinity_labels + custom.options[0].service_affinity_labels
            )
            earlier.options = [replace(self.options, service_affinity_labels=all_labels)]
        else:
            self._merge_presence(earlier, custom, argument)

    def _merge_presence(self, earlier: _Custom, custom: _Custom, at: At) -> None:
        """1.17: all label rules are one plugin, with the labels that must be there and those that must not."""
        merged: dict[bool, tuple[str, ...]] = {}
        for options in (*earlier.options, *custom.options):
            rule = options.labels_presence
            if rule is not None:
                merged[rule.presence] = merged.get(rule.presence, ()) + rule.labels
        for label in sorted(set(merged.get(True, ())) & set(merged.get(False, ()))):
            at.wrong(
                f"no label that must be both present and absent, as {label} must by the predicates so far",
                show=False,
            )
        earlier.options = [
            replace(self.options, labels_presence=LabelRule(labels, presence))
            for presence, labels in sorted(merged.items(), reverse=True)
        ]

    def _priorities(self, at: At) -> dict[str, tuple[ScorePlugin[Any] | None, int]]:
        if not at.given:
            _, defaults = provider_names(self.release, self.options, DEFAULT_PROVIDER)
            self._note_missing(missing_names(self.release, (), defaults))
            return dict(choose(self.release, self.options, (), defaults).scores)
        weights: dict[str, int] = {}
        customs: dict[str, _Custom] = {}
        for item in at.items("priorities"):
            fields = item.fields(("name", "weight", "argument"), "field of a priority")
            name = _name(fields["name"])
            weight = self._weight(fields["weight"])
            if self.rules.as_plugins and name == "EqualPriority":
                self.notes.append(f"EqualPriority is passed over, as {self.release.name} does")
            elif fields["argument"].given:
                self._custom_priority(name, weight, fields, customs)
            elif self._is_known(fields["name"], name, self.rules.priorities, customs, "priority"):
                if name in weights:
                    self.notes.append(
                        f"{fields['name'].path}: {name} stands there twice; the last weight counts"
                    )
                weights[name] = weight
        self._check_total(at, [*weights.values(), *(custom.weight for custom in customs.values())])
        if at.mistakes:
            return {}
        chosen = dict(choose(self.release, self.options, (), weights).scores)
        for custom in customs.values():
            plugins = [self.release.scores[custom.table_name](options) for options in custom.options]
            chosen[custom.name] = (_as_one(plugins), custom.weight)
        return chosen

    def _weight(self, at: At) -> int:
        high = _INT32 if self.rules.as_plugins else _INT64 // _MAX_CUSTOM_SCORE - 1
        expected = f"a weight from 1 to {high}"
        if not at.given:
            at.wrong(expected, show=False)
            return 1
        return at.integer(1, 1, high, expected)

    def _check_total(self, at: At, weights: list[int]) -> None:
        if sum(weights) * self.release.maximum > _INT64:
            most = _INT64 // self.release.maximum
            at.wrong(f"weights that sum to at most {most}", show=False)

    def _custom_priority(
        self, name: str, weight: int, fields: Mapping[str, At], customs: dict[str, _Custom]
    ) -> None:
        at = fields["argument"]
        known = _PRIORITY_ARGUMENTS if self.rules.has_ratio else _PRIORITY_ARGUMENTS[:-1]
        kind, argument = _only_one(at, known, f"priority of {self.release.name}")
        if argument is None:
            return
        if kind == "serviceAntiAffinity":
            label = _label(argument.fields(("label",), "field of serviceAntiAffinity")["label"])
            custom = _Custom(
                SERVICE_ANTI_AFFINITY, [replace(self.options, service_anti_affinity_label=label)], name
            )
        elif kind == "labelPreference":
            parts = argument.fields(("label", "presence"), "field of labelPreference")
            rule = LabelRule((_label(parts["label"]),), parts["presence"].boolean())
            custom = _Custom(NODE_LABEL, [replace(self.options, label_preference=rule)], name)
        else:
            custom = _Custom(RATIO_PRIORITY, [replace(self.options, ratio=self._ratio(argument))], name)
        custom.weight = weight
        if custom.table_name not in self.release.scores:
            argument.wrong(f"another argument: {custom.table_name} is {NOT_YET} for {self.release.name}")
        elif self.rules.keeps_names:
            if name in customs:
                self.notes.append(f"{at.path}: {name} stands there twice; the last counts")
            customs[name] = custom
        else:
            self._merge_priority(custom, fields["weight"], argument, customs)

    def _ratio(self, at: At) -> RatioShape:
        fields = at.fields(("shape", "resources"), f"field of {_RATIO}")
        shape = read_shape(fields["shape"])
        resources = read_resources(fields["resources"])
        if resources and self.rules.keeps_names:
            self.notes.append(
                f"{fields['resources'].path} has no effect in {self.release.name}: cpu and memory count"
            )
            resources = ()
        return RatioShape(shape, resources)

    def _merge_priority(self, custom: _Custom, weight: At, at: At, customs: dict[str, _Custom]) -> None:
        """1.17: one plugin for all priorities of a kind, of equal weights, and the sum of them."""
        written = custom.name
        custom.name = _PLUGIN_NAMES[custom.table_name]
        earlier = customs.setdefault(custom.name, custom)
        if earlier is custom:
            return
        if custom.table_name == RATIO_PRIORITY:
            at.wrong(f"one priority with {_RATIO}; {written} is the second", show=False)
        elif custom.weight != earlier.weight // len(earlier.options):
            weight.wrong(
                f"{earlier.weight // len(earlier.options)}, as all priorities of this kind have in 1.17"
            )
        elif custom.table_name == SERVICE_ANTI_AFFINITY:
            at.wrong(f"one priority with serviceAntiAffinity: several are {NOT_YET} for 1.17", show=False)
        else:
            rules = [options.label_preference for options in (*earlier.options, *custom.options)]
            if len({rule.labels for rule in rules if rule}) < len({rule for rule in rules if rule}):
                at.wrong("no label that is preferred both present and absent", show=False)
            earlier.options += custom.options
            earlier.weight += custom.weight

    def _note_missing(self, names: list[str]) -> None:
        if names:
            self.notes.append(f"{NOT_YET} for {self.release.name}, and not asked: {', '.join(names)}")


def _as_one(plugins: list[ScorePlugin[Any] | None]) -> ScorePlugin[Any] | None:
    """Make one plugin of several label preferences: 1.17 has one, with all labels."""
    first, *others = plugins
    if isinstance(first, PreferNodeLabels):
        for other in others:
            if isinstance(other, PreferNodeLabels):
                present, absent = first.present + other.present, first.absent + other.absent
                first = replace(first, present=present, absent=absent)
    return first


def _check_kind(fields: Mapping[str, At], kind: str, versions: tuple[str, ...]) -> None:
    if fields["kind"].text() != kind:
        fields["kind"].wrong(f"kind: {kind}")
    if fields["apiVersion"].text() not in versions:
        fields["apiVersion"].wrong(f"apiVersion: {' or '.join(versions)}")


def _name(at: At) -> str:
    name = at.text("a name", required=True)
    if name and not _NAME.fullmatch(name):
        at.wrong("a name of two or more letters, digits and inner hyphens")
        return ""
    return name


def _label(at: At) -> str:
    return at.text("a label of nodes", required=True)


def _only_one(at: At, known: tuple[str, ...], what: str) -> tuple[str, At | None]:
    """Return the one argument that is given; note if there are none or several."""
    n_before = len(at.mistakes)
    given = {name: one for name, one in at.fields(known, f"argument of a {what}").items() if one.given}
    if len(given) == 1:
        return next(iter(given.items()))
    if len(at.mistakes) == n_before:
        at.wrong(f"exactly one of {', '.join(known)}; there are {len(given)}", show=False)
    return "", None
