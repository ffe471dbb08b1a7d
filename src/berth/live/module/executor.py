"""Carries out a round's orders: removals first, then additions, all of a kind at once.

An order can be taken up wherever it stands: that is what happens after a restart, and after the API server was away.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from berth.cluster.arrays import NONE
from berth.errors import BerthError
from berth.live.api_errors import ApiError, ConnectionLostError, CredentialsError, ObjectMissingError
from berth.live.module.additions import add
from berth.live.module.expected import Expected
from berth.live.module.orders import BARE, Order, Outcome, Progress
from berth.live.module.pods import find_pod
from berth.live.module.preflight import refusals
from berth.live.module.removals import remove, restore_costs
from berth.live.module.scales import MovedError, RefusedError
from berth.live.module.tools import Tools, all_failed
from berth.module.changes import Change
from berth.module.services import find_workload
from berth.module.templates import pattern_of_workload

log = logging.getLogger(__name__)

Pair = tuple[Order, Progress]


@dataclass(slots=True)
class Executor:
    """Carries out orders on a live cluster.

    Attributes
    ----------
    trouble : str
        Why nothing gets on at present; empty if it does.
    """

    tools: Tools
    trouble: str = field(default="", init=False)

    async def refusals(self, changes: Sequence[Change]) -> dict[int, str]:
        """Return why changes can't be carried out, by their places; waits for the API server where that is away."""
        while True:
            try:
                found = await refusals(changes, self.tools)
            except (ApiError, ConnectionLostError, CredentialsError) as error:
                await self._pause(error)
            else:
                self.trouble = ""
                return found

    def expect(self, orders: Sequence[Order]) -> None:
        """Hold or place what comes from now on; said before anything is done, and before the scheduler decides."""
        removing = {order.controller for order in orders if order.operation == "remove"}
        for order in orders:
            replaced = order.operation == "remove" and order.kind not in (BARE, "StatefulSet")
            if replaced or (order.operation == "add" and order.controller not in removing):
                self._expect(order)

    def _expect(self, order: Order) -> None:
        cluster = self.tools.cluster
        expected = Expected.of(order, cluster)
        workload = find_workload(cluster, order.namespace, order.workload)
        if workload is not None and order.nodes:
            with suppress(BerthError):  # a template that can't be read: then nothing is kept free
                expected.keep(cluster.incoming(pattern_of_workload(cluster, workload).pod))
        self.tools.expected.expect(order.controller, expected)

    async def carry_out(self, orders: Sequence[Order], progress: Sequence[Progress]) -> dict[int, Outcome]:
        """Carry out orders from where they stand; return the decisions' outcomes by their places in the plan.

        Raises
        ------
        JournalClosedError
            The service ends.
        """
        both = list(zip(orders, progress, strict=True))
        await self._all([pair for pair in both if pair[0].operation == "remove"])
        await self._room(both)
        await self._all([pair for pair in both if pair[0].operation == "add"])
        self.tools.expected.end_all()
        return {
            index: outcome
            for order, its in both
            for index, outcome in zip(order.decisions, its.outcomes, strict=True)
        }

    async def _all(self, both: Sequence[Pair]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for order, progress in both:
                    group.create_task(self._order(order, progress))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _room(self, both: Sequence[Pair]) -> None:
        """Wait until the pods that leave have really gone from the nodes that gain some."""
        cluster = self.tools.cluster
        gaining = {node for order, _ in both for node in order.nodes}
        leaving = [
            (order.namespace, pod)
            for order, progress in both
            if order.operation == "remove"
            for pod, outcome in zip(order.pods, progress.outcomes, strict=True)
            if outcome.reason is None and outcome.node in gaining
        ]

        def is_free() -> bool:
            return all(find_pod(cluster, namespace, pod.name, pod.uid) == NONE for namespace, pod in leaving)

        await self.tools.watching.until(is_free, self.tools.patience.leave_s)

    async def _order(self, order: Order, progress: Progress) -> None:
        if not progress.outcomes:
            if order.operation == "add" and not self.tools.expected.knows(order.controller):
                self._expect(order)
            progress.outcomes = await self._outcomes(order, progress)
            await self.tools.journal.note(order, progress)
        self.tools.expected.end(order.controller)

    async def _outcomes(self, order: Order, progress: Progress) -> list[Outcome]:
        while True:
            try:
                return await self._try(order, progress)
            except (ConnectionLostError, CredentialsError) as error:
                await self._pause(error)
            except ApiError as error:
                if error.status < 500 and error.status != 429:
                    return all_failed(order, str(error), again=False)
                await self._pause(error)

    async def _try(self, order: Order, progress: Progress) -> list[Outcome]:
        try:
            outcomes = await (add if order.operation == "add" else remove)(order, progress, self.tools)
        except (MovedError, RefusedError, ObjectMissingError) as error:
            reason = f"{order.workload} is gone" if isinstance(error, ObjectMissingError) else str(error)
            again = isinstance(error, MovedError) and progress.scaling is None
            await restore_costs(order, progress, self.tools)
            outcomes = all_failed(order, reason, again=again)
        except (BerthError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("%s could not be changed as planned", order.workload)
            outcomes = all_failed(order, "internal error: see the log", again=False)
        self.trouble = ""
        return outcomes

    async def _pause(self, error: BerthError) -> None:
        if not self.trouble:
            log.warning("a round is held up: %s", error)
        self.trouble = f"a round is held up: {error}"
        await asyncio.sleep(self.tools.patience.retry_s)
