import io

import pytest
from rich.console import Console

from berth.cli.tables import (
    SUMMARY_COLUMNS,
    Table,
    counts_line,
    initials,
    legend,
    plain_lines,
    plan_table,
    print_table,
    summary_table,
)
from berth.module.plan import Plan, PlannedDecision, plan_of

REASON = "0/6 nodes are available: 3 Insufficient cpu, 3 node(s) had taints that the pod didn't tolerate."


@pytest.fixture
def plan() -> Plan:
    removed = PlannedDecision(
        request="r-01", operation="remove", namespace="shop", service="web", pod="web-6d4cf56db6-7xkzm",
        node="node-3", score=24, feasible=5,
        scores={"MostRequestedPriority": 6, "BalancedResourceAllocation": 9, "ServicePodsOnNodePriority": 4},
    )  # fmt: skip
    homeless = PlannedDecision(
        request="r-01", operation="remove", namespace="shop", service="web", pod="web-x"
    )
    failed = PlannedDecision(request="r-02", operation="add", namespace="shop", service="db", reason=REASON)
    return plan_of(7, [removed, homeless, failed], 6)


def shown(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    print_table(table, Console(file=out, width=width, markup=False, highlight=False))
    return [line.rstrip() for line in out.getvalue().replace("\u00a0", " ").splitlines()]


def test_wide_terminal(plan: Plan) -> None:
    assert shown(plan_table(plan), 120) == [
        "operation   service    pod                    node     score   feasible   scores",
        "─" * 120,
        "remove      shop/web   web-6d4cf56db6-7xkzm   node-3      24          5   MR 6 BRA 9 SPON 4",
        "remove      shop/web   web-x                                          0",
        "add         shop/db" + "0".rjust(52) + "   0/6 nodes are available: 3 Insufficient cpu, 3",
        " " * 74 + "node(s) had taints that the pod didn't",
        " " * 74 + "tolerate.",
    ]


def test_narrow_terminal(plan: Plan) -> None:
    assert shown(plan_table(plan), 80) == [
        "operation  service   pod                   node    score",
        "remove     shop/web  web-6d4cf56db6-7xkzm  node-3     24",
        "    MR 6 BRA 9 SPON 4, of 5 feasible",
        "remove     shop/web  web-x",
        "add        shop/db",
        "    0/6 nodes are available: 3 Insufficient cpu, 3 node(s) had taints that the",
        "    pod didn't tolerate.",
    ]


def test_a_long_table_is_written_as_it_goes(plan: Plan) -> None:
    long = plan_of(1, plan.decisions[:1] * 2_001, 0)
    assert len(shown(plan_table(long), 160)) == 1 + 2 * 2_001


def test_plain_columns(plan: Plan) -> None:
    lines = list(plain_lines(plan_table(plan)))
    assert [line.split()[:6] for line in lines] == [
        ["OPERATION", "SERVICE", "POD", "NODE", "SCORE", "FEASIBLE"],
        ["remove", "shop/web", "web-6d4cf56db6-7xkzm", "node-3", "24", "5"],
        ["remove", "shop/web", "web-x", "-", "-", "0"],
        ["add", "shop/db", "-", "-", "-", "0"],
    ]
    assert lines[3].endswith(REASON)


def test_summary(plan: Plan) -> None:
    assert summary_table(plan) == Table(
        SUMMARY_COLUMNS,
        [
            ("remove", "shop/web", "node-3", "1", ""),
            ("remove", "shop/web", "", "1", ""),
            ("add", "shop/db", "", "1", REASON),
        ],
    )
    assert shown(summary_table(plan), 160)[0] == "operation   service    node     pods   reason"


def test_an_empty_plan_has_a_header() -> None:
    assert len(list(plain_lines(plan_table(plan_of(1, [], 0))))) == 1
    assert shown(plan_table(plan_of(1, [], 0)), 80)


def test_last_line_counts(plan: Plan) -> None:
    assert counts_line(plan) == "0 added, 2 removed, 1 failed; 6 nodes without forecast"
    assert counts_line(plan_of(1, [], 1)) == "0 added, 0 removed, 0 failed; 1 node without forecast"
    assert counts_line(plan_of(1, [], 0)) == "0 added, 0 removed, 0 failed"


def test_capitals_are_explained(plan: Plan) -> None:
    assert legend(plan).startswith("MR MostRequestedPriority, BRA BalancedResourceAllocation")
    assert initials("InterPodAffinityPriority") == "IPA"
    assert initials("custom") == "custom"
