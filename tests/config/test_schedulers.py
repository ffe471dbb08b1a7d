import pytest

from berth.config.schedulers import configure
from berth.errors import InputError
from berth.releases import RELEASES


@pytest.mark.parametrize(
    ("text", "number"),
    [("", None), ("40", 40), ("+5", 5), ("0", None), ("-3", None), ("4x", None), ("1.5", None), (" 4", None)],
)
def test_the_volume_limit_is_read_as_upstream_reads_it(text: str, number: int | None) -> None:
    _, options = configure(RELEASES["1.13"], max_pd_volumes=text)
    assert options.max_pd_volumes == number


@pytest.mark.parametrize("release", ["1.7", "1.10", "1.13", "1.17"])
def test_the_autoscalers_provider_fills_nodes_up(release: str) -> None:
    configured, _ = configure(RELEASES[release], provider="ClusterAutoscalerProvider")
    (profile,) = configured.profiles.values()
    names = {score.name: score.weight for score in profile.scores}
    assert names["MostRequestedPriority"] == 1
    assert "LeastRequestedPriority" not in names


def test_an_unknown_provider_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match=r"DefaultProvider, ClusterAutoscalerProvider"):
        configure(RELEASES["1.13"], provider="Default")


def test_a_release_decides_with_its_own_gates_unless_told() -> None:
    def filters(release: str, **gates: bool) -> list[str]:
        configured, _ = configure(RELEASES[release], feature_gates=gates)
        (profile,) = configured.profiles.values()
        return [one.name for one in profile.filters]

    assert "CheckNodeUnschedulable" in filters("1.13")
    assert "CheckNodeCondition" in filters("1.13", TaintNodesByCondition=False)
    assert "EvenPodsSpread" not in filters("1.17")
    assert "NoVolumeNodeConflict" not in filters("1.7")
    assert "NoVolumeNodeConflict" in filters("1.7", PersistentLocalVolumes=True)
