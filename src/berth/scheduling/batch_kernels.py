"""The loops of a batch that are compiled, and the plugins' parts that are compiled into them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from berth.plugins.pod_topology_spread.scoring import DomainClasses
from berth.plugins.selector_spread import SpreadClasses
from berth.plugins.service_affinity import Shares
from berth.plugins.service_pods_on_node import PodsOnNode
from berth.scheduling import kernel
from berth.scheduling.board import NoClasses
from berth.scheduling.compiled import Group
from berth.scheduling.joint import JointClasses

PARTS: tuple[type[Any], ...] = (NoClasses, SpreadClasses, Shares, DomainClasses, JointClasses, PodsOnNode)
"""The classed parts that are compiled; a batch with another one runs in Python."""


class BatchKernels(NamedTuple):
    """The functions of `berth.scheduling.kernel`."""

    run: Callable[..., int]
    build: Callable[..., None]


BATCH = Group(
    "batch",
    BatchKernels(kernel.run, kernel.build),
    n_worth_loading=100_000,
    parts=PARTS,
    methods=(kernel.class_of, kernel.table, kernel.place, kernel.close),
)
