"""How is the panel "What the model sees" filled?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolbelt.core import agents, budgets, directives, effects, surface
from toolbelt.web import words
from toolbelt.web.presenters import model, pieces

LARGEST = 8
# How many sizes are listed at all.
MOST_SIZES = 100
_THEM = {True: "it", False: "them"}
_ON_EXCEED = {
    "warn": "this agent is warned, nothing is held back",
    "refuse": "nothing more can be switched on",
    "defer": "what is left was all asked for by name",
}


def view(answer: surface.Surface, message: str = "", change: effects.Effect | None = None) -> model.ModelView:
    """Fill the panel from a surface; ``message`` is what was tried, ``change`` what the last change did."""
    by_size = sorted(answer.tools, key=lambda definition: (-definition.tokens, definition.name))
    most = by_size[0].tokens if by_size else 0
    sizes = tuple(_size(definition.name, definition.tokens, most) for definition in by_size[:MOST_SIZES])
    spent, budget = answer.spent, answer.spent.budget
    most_tools, most_tokens = (budget.max_tools, budget.max_tokens) if budget is not None else (None, None)
    return model.ModelView(
        tools=words.number(spent.tools),
        tokens=words.number(spent.tokens),
        most_tools=words.number(most_tools) if most_tools is not None else "",
        most_tokens=words.limit(most_tokens) if most_tokens is not None else "",
        percent=_filled(spent),
        over=spent.is_passed,
        warnings=tuple(
            warnings(
                spent,
                len(answer.resolution.deferred),
                [warning.message for warning in answer.warnings if warning.code == "options-conflict"],
            )
        ),
        effect=effect(change) if change is not None else None,
        largest=sizes[:LARGEST],
        others=sizes[LARGEST:],
        smaller=words.number(len(by_size) - len(sizes)) if len(by_size) > len(sizes) else "",
        policy=tuple(
            model.PolicySection(toolkit=s.toolkit or s.tool, on=s.state == "on", text=s.text)
            for s in answer.policy.sections
        ),
        directive=directive(answer.directive, message),
    )


def warnings(spent: budgets.Spent, deferred: int, conflicts: Iterable[str]) -> Iterator[str]:
    """Say what needs an eye, in a sentence each; tools by their number, because they may be hundreds."""
    if deferred:
        yield (
            f"{words.tools(deferred)} deferred by the budget: there when the agent asks for {_THEM[deferred == 1]}."
        )
    if spent.is_passed and spent.budget is not None:
        yield f"Over the budget: {_ON_EXCEED[spent.budget.on_exceed]}."
    yield from conflicts


def directive(given: directives.Directive | None, message: str) -> model.Directive:
    """Present what a message would be focused on."""
    if given is None:
        return model.Directive(message=message)
    return model.Directive(
        message=message,
        tools=given.active_tools,
        tool_choice=given.tool_choice,
        because=tuple(
            model.DirectivePart(toolkit=toolkit, trigger=trigger) for toolkit, trigger in given.because
        ),
    )


def effect(change: effects.Effect) -> pieces.Effect:
    """Present what a change did, or would do."""
    return pieces.Effect(
        tools_before=words.number(change.tools_before),
        tools_after=words.number(change.tools_after),
        tools_delta=words.signed(change.tools),
        tokens_before=words.number(change.tokens_before),
        tokens_after=words.number(change.tokens_after),
        tokens_delta=words.signed(change.tokens),
        notes=(*notes(change.policy), *consequences(change.breaks, change.sessions)),
    )


def notes(policy: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Say what becomes of the policy: (toolkit, state before, state after) in a clause each."""
    return tuple(_policy_note(*changed) for changed in policy)


def consequences(breaks: Sequence[str], sessions: int | None) -> tuple[str, ...]:
    """Say what no number of tools tells: how many live sessions see it, and which prompt caches begin anew."""
    if not breaks or sessions is None:
        return ()
    what = " and ".join(f"the {part}" for part in breaks)
    verb = "change" if len(breaks) > 1 or breaks[0] == "tools" else "changes"
    if not sessions:
        return (f"no live session; {what} {verb} for the next ones",)
    many = "1 live session" if sessions == 1 else f"{words.number(sessions)} live sessions"
    whose = "its prompt cache starts" if sessions == 1 else "their prompt caches start"
    return (f"{many}; {what} {verb}: {whose} anew",)


def in_short(change: effects.Effect | None) -> str:
    """Say what a change did in a line."""
    if change is None:
        return ""
    if change.is_nothing:
        return "nothing changes outside of sessions" if change.breaks else "nothing changes for the model"
    return f"{words.signed(change.tools)} tools, {words.signed(change.tokens)} tokens"


def _policy_note(toolkit: str, before: str, after: str) -> str:
    if before == "on" and after == "off":
        return f"policy of {toolkit} replaced by its off text"
    if before == "off" and after == "on":
        return f"off text of {toolkit} replaced by its policy"
    if after == "none":
        return f"policy of {toolkit} goes"
    return f"policy of {toolkit} {'comes' if before == 'none' else 'follows its active tools'}"


_THEN = {"warn": "warns", "refuse": "refuses more", "defer": "defers the rest"}


def meter(spent: budgets.Spent) -> pieces.Meter | None:
    """Measure what is spent against the budget, if there is one that limits anything."""
    budget = spent.budget
    if budget is None or (budget.max_tools is None and budget.max_tokens is None):
        return None
    parts = []
    if budget.max_tools is not None:
        parts.append(f"{words.number(spent.tools)} of {words.tools(budget.max_tools)}")
    if budget.max_tokens is not None:
        parts.append(f"{words.about(spent.tokens)} of {words.limit(budget.max_tokens)} tokens")
    return pieces.Meter(
        words=", ".join(parts), percent=_filled(spent), over=spent.is_passed, then=_THEN[budget.on_exceed]
    )


def _filled(spent: budgets.Spent) -> int:
    """Say how much of the budget is used, by whichever of its two limits is nearer."""
    budget = spent.budget or agents.Budget()
    limits = ((spent.tools, budget.max_tools), (spent.tokens, budget.max_tokens))
    return max((_percent(now, most) for now, most in limits if most is not None), default=0)


def _size(key: str, tokens: int, most: int) -> model.ToolSize:
    prefix, name = split(key)
    return model.ToolSize(
        prefix=prefix, name=name, tokens=words.number(tokens), percent=_percent(tokens, most)
    )


def split(key: str) -> tuple[str, str]:
    """Part a tool's key into its namespace with ``__``, and its name."""
    namespace, separator, name = key.partition("__")
    return (namespace + separator, name) if separator and name else ("", key)


def _percent(part: int, whole: int) -> int:
    return min(100, round(100 * part / whole)) if whole else 100
