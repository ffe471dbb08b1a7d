"""Additions: replicas are raised, the scheduler puts what comes where it was planned; what does not come is taken back."""

from berth.live.module.expected import Expected
from berth.live.module.orders import Order, Outcome, Progress
from berth.live.module.scales import MovedError
from berth.live.module.tools import Tools

_UNDONE = "its replicas were put back"


async def add(order: Order, progress: Progress, tools: Tools) -> list[Outcome]:
    """Carry out an addition from where it stands, and return what became of each decision.

    Raises
    ------
    MovedError, RefusedError
        Nothing of it was done, nor will be.
    """
    expected = tools.expected.of(order.controller)
    if progress.putting_back is None:
        await _raise(order, progress, tools)
        wanted = [place for place in expected.places if place.node is not None]
        patience_s = tools.patience.appear_s
        if await tools.watching.until_all(
            lambda: sum(expected.bound(place) is not None for place in wanted), len(wanted), patience_s
        ):
            return _outcomes(expected, "")
    return await _put_back(order, progress, tools, expected)


async def _raise(order: Order, progress: Progress, tools: Tools) -> None:
    was_noted = progress.scaling is not None
    seen = await tools.scales.read(order.namespace, order.workload)
    try:
        await tools.scales.change(order, progress, "scaling", seen.generation, len(order.decisions))
    except MovedError:
        if not was_noted:
            raise
        # Nobody can tell any more whether it was done before a restart: the pods will.


async def _put_back(order: Order, progress: Progress, tools: Tools, expected: Expected) -> list[Outcome]:
    """Lower the replicas by the pods that have not come or are not bound: those go first."""
    expected.holds = True
    patience_s = tools.patience.appear_s
    reason = await tools.scales.why(order) or f"no pod was bound within {patience_s:g} s"
    scaling = progress.scaling
    assert scaling is not None  # nothing is put back that was not raised
    n_missing = sum(place.node is not None and expected.bound(place) is None for place in expected.places)
    try:
        if n_missing or progress.putting_back is not None:
            await tools.scales.change(order, progress, "putting_back", scaling.generation + 1, -n_missing)
    except MovedError as error:
        return _outcomes(expected, f"{order.workload}: {reason}; its replicas stay: {error}")
    # What came late has no node, and goes before all others; it is held until then.
    await tools.watching.until(lambda: not _waiting(expected), tools.patience.settle_s)
    return _outcomes(expected, f"{order.workload}: {reason}; {_UNDONE}")


def _waiting(expected: Expected) -> bool:
    unbound = any(place.uid and expected.bound(place) is None for place in expected.places)
    return unbound or bool(expected.held)


def _outcomes(expected: Expected, reason: str) -> list[Outcome]:
    outcomes = []
    for place in expected.places:
        found = expected.bound(place)
        if found is not None:
            outcomes.append(Outcome(*found))
        elif place.node is None:
            outcomes.append(Outcome(place.pod_name or None))  # made to wait, as was asked for
        else:
            outcomes.append(Outcome(reason=reason))
    return outcomes
