"""The shape of a score over utilization, and resources with weights: alike in Policies and plugin arguments."""

from berth.config.document import At
from berth.releases.release import ShapePoint

MAX_CUSTOM_SCORE = 10
_INT64 = 2**63 - 1


def read_shape(at: At) -> tuple[ShapePoint, ...]:
    """Read the points; note every mistake. Scores are 0 to 10 in every release."""
    if not at.given or at.plain == []:
        at.wrong("at least one point, {utilization: 0 to 100, score: 0 to 10}", show=False)
        return ()
    points = []
    latest: int | None = None
    for item in at.items("points"):
        fields = item.fields(("utilization", "score"), "field of a point")
        utilization = fields["utilization"].integer(0, 0, 100, "a utilization from 0 to 100")
        if latest is not None and utilization <= latest:
            fields["utilization"].wrong(f"more than {latest}: points are sorted by rising utilization")
        latest = utilization
        score = fields["score"].integer(0, 0, MAX_CUSTOM_SCORE, f"a score from 0 to {MAX_CUSTOM_SCORE}")
        points.append(ShapePoint(utilization, score))
    return tuple(points)


def read_resources(at: At, high: int = _INT64, *, once: bool = True) -> tuple[tuple[str, int], ...]:
    """Read resources with weights; a weight of 0 counts as 1, as upstream.

    Parameters
    ----------
    once : bool
        Whether a resource that stands there twice is a mistake; else both count.
    """
    found: list[tuple[str, int]] = []
    for item in at.items("resources"):
        fields = item.fields(("name", "weight"), "field of a resource")
        name = fields["name"].text("a resource such as cpu", required=True)
        expected = f"a weight from 1 to {high}" if high < _INT64 else "a positive weight"
        expected = "1, the only weight here" if high == 1 else expected
        weight = fields["weight"].integer(1, 0, high, expected) or 1
        if once and any(name == other for other, _ in found):
            fields["name"].wrong("each resource once")
        found.append((name, weight))
    return tuple(found)
