"""The start page: one self-contained HTML text, without scripts and without anything from elsewhere."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

import msgspec

from berth.cluster.accounting import CPU, MEMORY
from berth.module.plan import Plan, PlannedDecision
from berth.service.nodes import ClusterView, NodeView, quantities
from berth.service.suggestion import curl_line
from berth.store.interface import RoundRecord

SHOWN_NODES = 100
SHOWN_ROUNDS = 5
SHOWN_DECISIONS = 20

_plans = msgspec.json.Decoder(Plan)

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --soft: #5d6b7a; --line: #dde3ea; --back: #fff; --bar: #e8edf3;
  --cpu: #2f6fd0; --memory: #14866d; --full: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #9aa8b7; --line: #313b47; --back: #161b21;
  --bar: #28313c; --cpu: #6aa2f7; --memory: #3fbf9b; --full: #f08a4b; } }
body { margin: 2rem auto; max-width: 68rem; padding: 0 1rem; color: var(--ink); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.7rem; } h2 { margin: 2rem 0 .6rem; font-size: 1.15rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
.notice { border-left: 4px solid var(--full); padding: .3rem .8rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.2rem; margin-top: 1rem; }
.figures b { display: block; font-size: 1.4rem; font-weight: 600; line-height: 1.2; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .7rem .9rem; border: 1px solid var(--line);
  border-radius: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2rem .6rem .2rem 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.reason { white-space: normal; color: var(--full); min-width: 16rem; }
.bar { display: inline-block; width: 9rem; height: .75rem; border-radius: 3px; background: var(--bar);
  vertical-align: middle; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--cpu); } .bar.memory i { background: var(--memory); }
.bar.full i { background: var(--full); }
.amount { color: var(--soft); font-size: .85em; margin-left: .5rem; }
details { margin: .5rem 0; } summary { cursor: pointer; }
"""


def render(
    *,
    url: str,
    description: str,
    example: tuple[str, str] | None,
    view: ClusterView | None,
    rounds: Sequence[RoundRecord],
    notices: Sequence[str] = (),
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    url : str
        Where the service is reached.
    example : (str, str) or None
        Namespace and name of a service to try things on.
    view : ClusterView or None
        The cluster; None while it can't be looked at.
    rounds : sequence of RoundRecord
        The latest, the newest first.
    notices : sequence of str
        What the user should know first.
    """
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Berth</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Berth</h1>",
        "<p>Adds pods of services to a cluster and takes some away, in rounds: every node is scored, and the load "
        "that is forecast counts.</p>",
        f'<p class="soft">It works on {escape(description)}.</p>',
        *(f'<p class="notice">{escape(notice)}</p>' for notice in notices),
        *(_figures(view) if view else ()),
        *(_next_steps(url, example) if example else ()),
        *_rounds(rounds),
        *(_nodes(view) if view else ()),
        "</body></html>",
    ]
    return "\n".join(parts)


def _figures(view: ClusterView) -> Iterator[str]:
    figures = [
        (f"{len(view.nodes):,}", "nodes"),
        (f"{view.n_pods:,}", "pods"),
        (f"{view.n_pending:,}", "pending"),
        (f"{view.n_services:,}", "services"),
    ]
    for resource in (CPU, MEMORY):
        requested, allocatable = view.total(resource)
        share = f"{100 * requested / allocatable:.0f} %" if allocatable else "–"
        figures.append((share, f"of {resource} requested"))
    yield '<div class="figures">'
    yield from (f"<div><b>{escape(figure)}</b>{escape(what)}</div>" for figure, what in figures)
    yield "</div>"


def _next_steps(url: str, example: tuple[str, str]) -> Iterator[str]:
    yield "<h2>Try it</h2>"
    yield f"<p>Add 3 pods to the service {escape('/'.join(example))}, then load this page again:</p>"
    yield f"<pre>{escape(curl_line(url, *example))}</pre>"
    links = [
        ("rounds", "rounds"),
        ("nodes", "nodes"),
        ("metrics", "metrics"),
        ("readyz", "health"),
        ("openapi.json", "OpenAPI"),
    ]
    told = " · ".join(f'<a href="{path}">{name}</a>' for path, name in links)
    yield f'<p class="soft">POST the same body to /plan for a dry run. As JSON: {told}</p>'


def _rounds(rounds: Sequence[RoundRecord]) -> Iterator[str]:
    yield "<h2>Latest rounds</h2>"
    if not rounds:
        yield '<p class="soft">None yet.</p>'
    for i, record in enumerate(rounds):
        summary = record.summary
        began = datetime.fromtimestamp(summary.began, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        state = "" if summary.finished is not None else ", under way"
        yield f"<details{' open' if i == 0 else ''}><summary>Round {summary.number}, {began}{state}: "
        yield f"{summary.added} added, {summary.removed} removed, {summary.failed} failed</summary>"
        if record.plan is not None:
            yield from _decisions(_plans.decode(record.plan).decisions)
        yield "</details>"


def _decisions(decisions: Sequence[PlannedDecision]) -> Iterator[str]:
    yield '<div class="scroll"><table><tr><th>request<th>operation<th>service<th>pod<th>node<th>score<th>reason</tr>'
    for decision in decisions[:SHOWN_DECISIONS]:
        score = "" if decision.score is None else str(decision.score)
        scores = ", ".join(f"{name} {value}" for name, value in decision.scores.items())
        cells = [
            decision.request,
            decision.operation,
            f"{decision.namespace}/{decision.service}",
            decision.pod or "",
            decision.node or "",
        ]
        yield "<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells)
        yield f'<td class="number" title="{escape(scores)}">{escape(score)}'
        yield f'<td class="reason">{escape(decision.reason or "")}</tr>'
    yield "</table></div>"
    if len(decisions) > SHOWN_DECISIONS:
        yield f'<p class="soft">and {len(decisions) - SHOWN_DECISIONS:,} more</p>'


def _nodes(view: ClusterView) -> Iterator[str]:
    yield "<h2>Nodes</h2>"
    yield '<div class="scroll"><table><tr><th>node<th>pods<th>cpu requested<th>memory requested<th></tr>'
    for node in view.nodes[:SHOWN_NODES]:
        yield f'<tr><td>{escape(node.name)}<td class="number">{node.pods}'
        yield from (f"<td>{_bar(node, resource)}" for resource in (CPU, MEMORY))
        yield f"<td>{_state(node)}</tr>"
    yield "</table></div>"
    if len(view.nodes) > SHOWN_NODES:
        yield f'<p class="soft">and {len(view.nodes) - SHOWN_NODES:,} more</p>'


def _bar(node: NodeView, resource: str) -> str:
    share = node.share(resource)
    full = " full" if share > 0.9 else ""
    offered = quantities({resource: node.allocatable.get(resource, 0)})[resource]
    width = min(100.0, 100 * share)
    return (
        f'<span class="bar {resource}{full}"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="amount">{share:.0%} of {escape(offered)}</span>'
    )


def _state(node: NodeView) -> str:
    states = [] if node.ready else ["not ready"]
    states += [] if node.schedulable else ["cordoned"]
    return escape(", ".join(states))
