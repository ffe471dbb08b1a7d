"""When a toleration stands a taint (``Toleration.ToleratesTaint``, alike from 1.7 to 1.36 but for alpha operators)."""

from collections.abc import Iterable

from berth.objects.nodes import Taint
from berth.objects.pods import Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether one toleration stands one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether any toleration stands the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)
