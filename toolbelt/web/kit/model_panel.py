"""The panel "What the model sees"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolbelt.core import agents, catalog, directives, effects, policy, surface
from toolbelt.core.rules import budgets
from toolbelt.web.kit import pieces, words

MAX_SIZE = 8
# The most sizes that are listed.
MAX_SIZES = 100
_ON_EXCEED = {
    "warn": "this agent only gets a warning",
    "refuse": "you cannot turn on more tools",
    "defer": "the remaining tools are all turned on by name, so none can be deferred",
}


class Panel(pieces.View):
    """The panel of a surface; ``message`` is the message to try, ``change`` the effect of the last change."""

    def __init__(
        self, result: surface.Surface, message: str = "", change: effects.Effect | None = None
    ) -> None:
        by_size = sorted(result.tools, key=lambda definition: (-definition.tokens, definition.name))
        maximum = by_size[0].tokens if by_size else 0
        sizes = [(definition, _percent(definition.tokens, maximum)) for definition in by_size[:MAX_SIZES]]
        stored, spent = result.resolution.context.catalog, result.spent
        conflicts = [warning.message for warning in result.warnings if warning.code == "options-conflict"]
        self.spent = spent
        self.shares = shares(spent, words.number)
        self.percent = _percent_used(spent)
        self.warnings = tuple(warnings(spent, len(result.resolution.deferred), conflicts))
        self.effect = effect(change) if change is not None else None
        self.largest = sizes[:MAX_SIZE]
        self.others = sizes[MAX_SIZE:]
        self.smaller = len(by_size) - len(sizes)
        self.policy = [(section, section_tokens(stored, section)) for section in result.policy.sections]
        self.loadable = result.policy.loadable
        self.directive = Directive(result.directive, message)


def shares(spent: budgets.Spent, count: Callable[[int], str] = words.approx) -> str:
    """Return the tokens of tools and policy separately: ``tools ~1.2k + policy ~340``; empty without policy."""
    if not spent.policy_tokens:
        return ""
    # A line never ends between a word and its number.
    return (
        f"tools\u00a0{count(spent.tokens - spent.policy_tokens)} + policy\u00a0{count(spent.policy_tokens)}"
    )


def section_tokens(stored: catalog.Catalog, section: policy.Section) -> str:
    """Return the tokens of one section of the policy; empty if they are not counted."""
    tokens = policy.section_tokens(stored, section)
    return words.number(tokens) if tokens else ""


def warnings(spent: budgets.Spent, deferred: int, conflicts: Iterable[str]) -> Iterator[str]:
    """Return the warnings, one sentence each. Tools are counted and not named, because there may be hundreds."""
    if deferred:
        pronoun = "it" if deferred == 1 else "them"
        yield f"{words.tools(deferred)} deferred by the budget: the agent can load {pronoun} on request."
    if spent.is_exceeded and spent.budget is not None:
        yield f"Over budget: {_ON_EXCEED[spent.budget.on_exceed]}."
    yield from conflicts


class Directive(pieces.View):
    """The directive of a message: without one, ``tools`` is empty; before a trial, ``message`` is empty."""

    def __init__(self, result: directives.Directive | None, message: str) -> None:
        self.message = message
        self.tools = result.active_tools if result else ()
        self.tool_choice = result.tool_choice if result else "auto"
        self.because = result.because if result else ()


def effect(change: effects.Effect) -> pieces.Effect:
    """Return the effect of a change for a page."""
    return pieces.Effect.of(
        [change],
        (
            *notes(change.policy),
            *on_request(change.on_request_added, change.on_request_removed),
            *consequences(change.breaks, change.conversations),
        ),
    )


def difference(agent: str, change: effects.Effect) -> pieces.Difference:
    """Return the agent's tools and tokens before and after a change."""
    return pieces.Difference(
        label=agent,
        before=f"{words.tools(change.tools_before)}, {words.approx(change.tokens_before)} tokens",
        after=f"{words.tools(change.tools_after)}, {words.approx(change.tokens_after)} tokens",
    )


def tool_changes(added: Iterable[str], removed: Iterable[str]) -> Iterable[pieces.Difference]:
    """Return a line for each tool that is added or removed."""
    for tools, before, after in ((added, "Not on", "On"), (removed, "On", "Not on")):
        for tool in tools:
            yield pieces.Difference(label=tool, is_tool=True, before=before, after=after)


def notes(policy: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the effects on the policy, from (toolkit, state before, state after), one clause each."""
    return tuple(_policy_note(*changed) for changed in policy)


def on_request(added: Sequence[str], removed: Sequence[str]) -> Iterator[str]:
    """Yield the effects on what an agent gets on request, one clause each."""
    if removed:
        yield f"no longer on request: {words.listing(tuple(removed))}"
    if added:
        yield f"now on request: {words.listing(tuple(added))}"


def consequences(breaks: Sequence[str], conversations: effects.Conversations | None) -> tuple[str, ...]:
    """Return what a change does to live conversations, and which prompt caches it resets."""
    if not breaks or conversations is None:
        return ()
    parts = " and ".join(f"the {part}" for part in breaks)
    verb = "change" if len(breaks) > 1 or breaks[0] == "tools" else "changes"
    sentence, rewritten = conversations.sentence, conversations.rewritten
    if not conversations.total:
        return (f"{sentence}; {parts} {verb} for new ones",)
    if not rewritten:
        return (sentence,)
    caches = "its prompt cache" if rewritten == 1 else "their prompt caches"
    whose = "" if rewritten == conversations.total else f" of the {words.number(rewritten)}"
    return (f"{sentence}; {parts} {verb}, which resets {caches}{whose}",)


def summarize(change: effects.Effect | None) -> str:
    """Return the effect of a change in one line."""
    if change is None:
        return ""
    if change.is_nothing:
        return "no change outside sessions" if change.breaks else "no change for the model"
    parts = []
    if change.added or change.removed or change.policy:
        tools = "tool" if abs(change.tools) == 1 else "tools"
        parts.append(f"{words.signed(change.tools)} {tools}, {words.signed(change.tokens)} tokens")
    parts += on_request(change.on_request_added, change.on_request_removed)
    return "; ".join(parts)


def _policy_note(toolkit: str, before: str, after: str) -> str:
    if before == "on" and after == "off":
        return f"replaces policy {toolkit} with its text for when it is off"
    if before == "off" and after == "on":
        return f"adds policy {toolkit}, in place of its text for when it is off"
    if after == "none":
        return f"removes policy {toolkit}"
    return (
        f"adds policy {toolkit}"
        if before == "none"
        else f"updates policy {toolkit} for the tools that are on"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How much of a budget is used: in words, and in percent of the limit that is closer to being reached."""

    words: str
    percent: int
    is_exceeded: bool


def meter(spent: budgets.Spent) -> Meter | None:
    """Return how much of the budget is used; None if the budget limits nothing."""
    budget = spent.budget
    if budget is None or (budget.max_tools is None and budget.max_tokens is None):
        return None
    parts = []
    if budget.max_tools is not None:
        parts.append(f"{words.number(spent.tools)} of {words.tools(budget.max_tools)}")
    if budget.max_tokens is not None:
        parts.append(f"{words.approx(spent.tokens)} of {words.limit(budget.max_tokens)} tokens")
    return Meter(words=", ".join(parts), percent=_percent_used(spent), is_exceeded=spent.is_exceeded)


def _percent_used(spent: budgets.Spent) -> int:
    """Return the used percentage of the limit that is closer to being reached."""
    budget = spent.budget or agents.Budget()
    limits = ((spent.tools, budget.max_tools), (spent.tokens, budget.max_tokens))
    return max((_percent(now, maximum) for now, maximum in limits if maximum is not None), default=0)


def split_key(key: str) -> tuple[str, str]:
    """Split a tool's key into its namespace, with ``__``, and its name."""
    namespace, separator, name = key.partition("__")
    return (namespace + separator, name) if separator and name else ("", key)


def _percent(part: int, total: int) -> int:
    return min(100, round(100 * part / total)) if total else 100
