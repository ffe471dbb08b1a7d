"""Which plugins decide: a configuration file, an algorithm provider, or a release's default."""

from collections.abc import Mapping
from pathlib import Path

from berth.config.configured import DEFAULT_SCHEDULER, Configured
from berth.config.document import At, read_document
from berth.config.mistakes import ConfigError, ConfigMistake
from berth.config.policy import KIND as POLICY
from berth.config.policy import NOT_YET, read_policy
from berth.config.scheduler_configuration import KIND, read_scheduler_configuration
from berth.plugins.volume_limits import read_max_volumes
from berth.releases.profiles import DEFAULT_PROVIDER, missing_names, provider_names, provider_profile
from berth.releases.registered import own_feature_gates
from berth.releases.release import Options, Release

MODERN = "1.36"
"""The release that has a KubeSchedulerConfiguration in place of a Policy and of algorithm providers."""


def configure(
    release: Release,
    config: Path | None = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    max_pd_volumes: str = "",
) -> tuple[Configured, Options]:
    """Make a release's profiles, and the options that they were made with.

    Parameters
    ----------
    config
        A Policy (1.7 to 1.17) or a KubeSchedulerConfiguration (1.36).
    provider
        An algorithm provider, in place of a file.
    feature_gates
        Set over the release's own.
    max_pd_volumes
        What the environment's ``KUBE_MAX_PD_VOLS`` says; anything but a positive number counts as nothing, as upstream.

    Raises
    ------
    ConfigError
        With every mistake of the file.
    InputError
        There is no such provider.
    """
    gates = {**own_feature_gates(release.name), **(feature_gates or {})}
    options = Options(feature_gates=gates, max_pd_volumes=read_max_volumes(max_pd_volumes))
    if config is not None:
        document = read_document(config)
        _check_kind(document, release)
        if release.name == MODERN:
            return read_scheduler_configuration(document, release, options), options
        return read_policy(document, release, options), options
    provider = provider or DEFAULT_PROVIDER
    profile = provider_profile(release, options, provider)
    missing = missing_names(release, *provider_names(release, options, provider))
    notes = (f"{NOT_YET} for {release.name}, and not asked: {', '.join(missing)}",) if missing else ()
    return Configured({DEFAULT_SCHEDULER: profile}, notes), options


def _check_kind(document: At, release: Release) -> None:
    """Refuse the other releases' kind of file at once: nothing else in it would make sense."""
    kind = document.plain.get("kind")
    expected = KIND if release.name == MODERN else POLICY
    if kind in (KIND, POLICY) and kind != expected:
        hint = f"kind: {expected}, which is what {release.name} reads"
        raise ConfigError([ConfigMistake("kind", document.source, kind, hint)])
