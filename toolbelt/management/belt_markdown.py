"""A plan of a belt, and what it would have done, as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolbelt.control import proofs
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_effects, belt_plans, belts, drift
from toolbelt.core import texts

# How many tools are named in a cell; how many rows a table has: comments have a limit.
MAX_TOOLS = 10
MAX_ROWS = 100
_SIGNS = re.compile(r"([\\`*_{}\[\]<>()#+!|~@-])")


def lines(plan: belt_plans.Plan, since: drift.Drift | None = None) -> Iterator[str]:
    """Yield the plan: who gains and loses what, what must be confirmed, each entry that changes, and what was changed
    since a belt was applied.
    """
    yield "### Toolbelt: what this belt would change"
    yield ""
    if plan.is_nothing:
        yield "Nothing: the configuration is as the belt says."
        return
    imported, consequences = plan.assessment.imported, plan.assessment.consequences
    archived = f", {texts.counted(len(plan.archived), 'agent')} to archive" if plan.archived else ""
    yield (
        f"**{imported.created} to create, {imported.changed} to change{archived}**, {imported.same} unchanged."
        f" {texts.counted(len(consequences), 'agent')} affected."
    )
    if plan.reasons:
        yield ""
        yield "**To confirm:**"
        yield ""
        yield from _cut([f"- {_text(reason)}" for reason in plan.reasons], "- and {} more")
    if consequences:
        yield ""
        yield "| agent | tools | tokens | gains | loses |"
        yield "|---|---|---|---|---|"
        yield from _cut([_row(item) for item in consequences], "| and {} more | | | | |")
    yield ""
    yield from _cut([*_entries(imported)], "- and {} more")
    if since is not None and since.differences:
        yield ""
        yield f"**Changed since {_code(since.applied.name)} was applied:**"
        yield ""
        yield from _cut([f"- {_text(drift.line(each))}" for each in since.differences], "- and {} more")


def proof_lines(proof: proofs.Proof) -> Iterator[str]:
    """Yield what a change would have done to the recorded calls."""
    yield "### Toolbelt: what this would have done"
    yield ""
    yield f"**{_text(proof.sentence)}**"
    yield ""
    yield _text(proof.coverage_sentence)
    if proof.rows:
        yield ""
        yield "| agent | tool | today | with the change | calls | ran | sessions | because |"
        yield "|---|---|---|---|---|---|---|---|"
        rows = [
            f"| {_code(row.agent)} | {_code(row.tool)} | {proofs.WORDS[row.before]} | {proofs.WORDS[row.after]}"
            f" | {row.calls} | {row.ran} | {len(row.sessions)} | {_text(row.words)} |"
            for row in proof.rows
        ]
        yield from _cut(rows, "| and {} more | | | | | | | |")
    yield ""
    yield _text(proofs.CAVEAT)


def _row(item: belt_effects.Consequence) -> str:
    effect = item.effect
    cells = (
        _code(item.agent) + (" (new)" if item.is_new else ""),
        f"{effect.tools_before} → {effect.tools_after}",
        f"{effect.tokens_before} → {effect.tokens_after}",
        _names(effect.added),
        _names(effect.removed),
    )
    return f"| {' | '.join(cells)} |"


def _entries(imported: belts.Imported) -> Iterator[str]:
    for difference in imported.differences:
        name = f"{difference.kind.replace('_', '-')} {_code(difference.name)}"
        if difference.before is None:
            yield f"- new {name}"
            continue
        _, after = entries.differences(difference.before, difference.after)
        yield f"- {name}: {', '.join(map(_code, after))}"
    for kind in imported.ordered:
        yield f"- another order of {kind.replace('_', '-')}s"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_TOOLS} more" if len(names) > MAX_TOOLS else ""
    return ", ".join(map(_code, names[:MAX_TOOLS])) + more


def _cut(rows: Sequence[str], more: str) -> Iterator[str]:
    yield from rows[:MAX_ROWS]
    if len(rows) > MAX_ROWS:
        yield more.format(len(rows) - MAX_ROWS)


def _code(name: str) -> str:
    """Return a name as code. Names of others must not end it, nor a cell."""
    return f"`{' '.join(name.replace('`', chr(39)).replace('|', '/').split())}`"


def _text(text: str) -> str:
    """Return a text in a line that shows as it is: neither a link, nor a mention, nor HTML."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
