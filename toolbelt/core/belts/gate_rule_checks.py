"""Checks of gate rules against what exists. What can never apply is refused, because it would protect nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from toolbelt.core import call_approvals, call_limits, conditions, errors, gate_rules, loadouts, sessions
from toolbelt.core.belts import findings, name_index, vocabulary

# What a model reads each time.
MAX_REASON = 500
# As long as the name of a group can be.
MAX_GROUP = 150


def gate_rule(entry: vocabulary.GateRule, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check a rule's tools, conditions and reason."""
    for position, pattern in enumerate(entry.tools or ()):
        if pattern is None:
            continue
        if problem := loadouts.pattern_problem(pattern):
            yield findings.Finding(("tools", position), problem)
        elif not pattern.endswith("*") and (tool := index.stored.tools.get(pattern)) is None:
            yield findings.missing(("tools", position), "tool", pattern, index.stored.tools)
        elif not pattern.endswith("*") and tool is not None and tool.kind != "tool":
            message = f"{pattern!r} is a {tool.kind}, and rules are about calls of tools: override it, or remove it."
            yield findings.Finding(("tools", position), message)
    for field, written in (("when", entry.when), ("unless", entry.unless)):
        if written is not None and (problem := conditions.problem(written)):
            yield findings.Finding((field,), f"This is not a condition: {problem}.")
    yield from _of_the_past(entry)
    for field, default, maximum in (
        ("approvals", 1, call_approvals.MAX_APPROVALS),
        ("expires", 0, call_approvals.MAX_SECONDS),
    ):
        value = getattr(entry, field)
        if value in (None, default):
            continue
        if entry.effect != "ask":
            yield findings.Finding((field,), "Only a rule that asks has it: remove it, or write effect: ask.")
        elif not 1 <= value <= maximum:
            yield findings.Finding((field,), f"This is a whole number from 1 to {maximum}.")
    if entry.approvers and entry.effect != "ask":
        yield findings.Finding(
            ("approvers",), "Only a rule that asks has it: remove it, or write effect: ask."
        )
    for position, group in enumerate(entry.approvers or ()):
        if not group or not group.strip() or len(group) > MAX_GROUP:
            message = f"This is the name of a group, of 1 to {MAX_GROUP} characters."
            yield findings.Finding(("approvers", position), message)
    if entry.reason is not None and len(entry.reason) > MAX_REASON:
        yield findings.Finding(("reason",), f"A reason has {MAX_REASON} characters at most: shorten it.")


def _of_the_past(entry: vocabulary.GateRule) -> Iterator[findings.Finding]:
    """Check a rule's labels, and its limit on calls."""
    for field, names in (("labels", entry.labels), ("without", entry.without)):
        yield from labels(field, names)
    if (limit := entry.more_than) is None:
        return
    if entry.effect == "allow":
        message = "A rule that allows has no limit: an agent would permit itself a call by making others. Remove it."
        yield findings.Finding(("more_than",), message)
    if limit.calls is None or limit.calls > call_limits.MAX_CALLS:
        message = f"Write how many calls may be made: a whole number from 0 to {call_limits.MAX_CALLS}."
        yield findings.Finding(("more_than", "calls"), message)
    if limit.per is None or call_limits.seconds_of(limit.per) is None:
        message = "Write the time: minute, hour, day, week, or a number with s, m, h or d, such as 10m (at most 31d)."
        yield findings.Finding(("more_than", "per"), message)


def labels(field: str, names: Sequence[str | None] | None) -> Iterator[findings.Finding]:
    """Check a list of labels."""
    for position, name in enumerate(names or ()):
        if name is not None and (problem := sessions.label_problem(name)):
            yield findings.Finding((field, position), problem)


def too_many(names: Collection[str]) -> Iterator[errors.Problem]:
    """Yield the problem that there are more rules than each call can be judged by."""
    if len(names) > gate_rules.MAX_RULES:
        message = f"There can be {gate_rules.MAX_RULES} rules at most: remove some, or join them."
        yield errors.Problem(path="gate_rules", message=message)
