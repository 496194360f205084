"""What there is to be notified of now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from toolbelt.control import trials
from toolbelt.control.agents import call_approvals
from toolbelt.control.people import rights
from toolbelt.control.reports import attention
from toolbelt.core import alerts, grants, schema, texts

# The longest arguments that a message has, as JSON.
MAX_ARGUMENTS = 4_000


def _approvals() -> Iterator[alerts.Alert]:
    for group in call_approvals.pending():
        for approval in group.approvals:
            yield alerts.Alert(
                event="approval-pending",
                subject=approval.key,
                text=f"{approval.agent} waits for approval {approval.key} to call {approval.tool}.",
                path=f"/review/approvals/{approval.key}/",
                # Without secrets, as people see them.
                details={
                    "approval": approval.key,
                    "agent": approval.agent,
                    "tool": approval.tool,
                    "arguments": _readable(approval.arguments),
                    "expires": grants.format_time(approval.expires),
                },
            )


def _readable(arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the arguments, unless a message would be mostly of them."""
    return arguments if len(schema.canonical(arguments)) <= MAX_ARGUMENTS else None


def of(found: attention.Attention) -> Iterator[alerts.Alert]:
    """Yield the alerts about what needs attention."""
    for plugin, count in found.to_review.items():
        path = f"/review/?plugin={quote(plugin)}"
        yield _alert(
            "tools-to-review", plugin, f"{texts.counted(count, 'tool')} of {plugin} to review.", path
        )
    for plugin, by_tool in found.findings.items():
        text = f"{texts.counted(len(by_tool), 'tool')} of {plugin or 'the installation'} with findings."
        yield _alert("findings", plugin, text, "/review/")
    for failed in found.failed_plugins:
        name = failed.plugin.name
        yield _alert("server-failed", name, f"{name} has failed.", f"/plugins/{quote(name)}/")
    for needed in found.sign_in_needed:
        name = needed.plugin.name
        yield _alert("sign-in-needed", name, f"{name} needs a sign-in.", f"/plugins/{quote(name)}/")
    for summary in found.agents:
        key = summary.agent.key
        if summary.inventory.spent.is_exceeded:
            yield _alert("budget-passed", key, f"{key} exceeds its budget.", f"/agents/{quote(key)}/")
    for trial in found.trials:
        path = f"/review/drafts/{trial.draft}/"
        # What is sent may reach everyone.
        note = trials.why(trial, rights.is_open)
        if trial.mode == "schedule":
            text = f"The draft {trial.title!r} was not applied at its time: {note}"
            yield _alert("draft-not-applied", str(trial.draft), text, path)
        elif trial.mode == "rollout":
            text = f"The draft {trial.title!r} is not rolled out any more: {note}"
            yield _alert("draft-reverted", str(trial.draft), text, path)
        else:
            text = f"The draft {trial.title!r} was observed: apply it, go on, or discard it."
            if note:
                text = f"The draft {trial.title!r} could not be observed any longer: {note}"
            yield _alert("draft-observed", str(trial.draft), text, path)
    if found.drift is not None and found.drift.differences:
        yield _alert("configuration-drift", "", found.drift.message, "/belt/")


def _alert(event: str, subject: str, text: str, path: str) -> alerts.Alert:
    return alerts.Alert(event=event, subject=subject[:200], text=text, path=path)


def _of_attention() -> Iterator[alerts.Alert]:
    return of(attention.load())


_OF_APPROVALS = ("approval-pending",)
# What finds out about which events. If one fails, the others do not.
SOURCES: Mapping[tuple[str, ...], Callable[[], Iterable[alerts.Alert]]] = {
    _OF_APPROVALS: _approvals,
    tuple(event for event in alerts.EVENTS if event not in _OF_APPROVALS): _of_attention,
}
