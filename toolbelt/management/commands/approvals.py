"""``manage.py approvals [list | show | approve | reject | revoke]``: calls that wait for approval, and decisions."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.core import errors, gate_rules, grants, texts
from toolbelt.management import columns, terminal

_MINUTE = 60


class Command(terminal.Command):
    """List calls that wait for approval, and decide about them."""

    help = "List calls that wait for approval, show one with its arguments, and approve or reject it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands; without one, list what is pending."""
        commands = parser.add_subparsers(dest="act", metavar="ACTION")
        listing = commands.add_parser("list", help="list calls, by default those that wait")
        listing.add_argument("--agent", metavar="AGENT", help="only calls of this agent")
        listing.add_argument(
            "--state", choices=[*call_approvals.STATES, "all"], default="pending", help="only in this state"
        )
        listing.add_argument(
            "--always", action="store_true", help="only approvals that hold for further calls"
        )
        show = commands.add_parser(
            "show", help="print a call's arguments, and what changed since the last one"
        )
        approve = commands.add_parser("approve", help="approve a call: it runs once, when it is made again")
        approve.add_argument(
            "--shown", metavar="DIGEST", help="refuse unless it still is what show printed with this digest"
        )
        approve.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=0,
            help="also approve the same call automatically, in any session, for as many days",
        )
        revoke = commands.add_parser("revoke", help="end an approval that holds for days")
        reject = commands.add_parser("reject", help="reject a call")
        reject.add_argument("--note", metavar="TEXT", default="", help="what the model reads")
        people = commands.add_parser("people", help="list who decided, how often and how fast")
        people.add_argument("--days", metavar="N", type=int, default=30, help="in the last N days (30)")
        for command in (show, approve, reject, revoke):
            command.add_argument("approval", metavar="APPROVAL", help="its id, such as 7F3KQ2MW")
        for command in (approve, reject, revoke):
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str | None, **options: Any) -> None:
        """Run the subcommand."""
        try:
            lines = list(_ACTS[act or "list"](options))
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        for line in lines:
            self.stdout.write(line)


def _list(options: dict[str, Any]) -> Iterator[str]:
    state, agent = options.get("state", "pending"), options.get("agent")
    if options.get("always"):
        kept = call_approvals.kept(None if agent is None else [agent])
        yield from columns.lines(
            (each.key, each.agent, each.tool, _always(each), texts.listing(each.approved_by)) for each in kept
        )
        if not kept:
            yield "No approval holds for further calls."
        return
    found = call_approvals.listed(
        state="" if state == "all" else state,
        agents=None if agent is None else [agent],
        maximum=call_approvals.MAX_LISTED,
    )
    if not found:
        yield "No calls wait for approval." if state == "pending" else "There are none."
    yield from columns.lines(
        (each.key, each.agent, each.tool, texts.listing(each.rules), _state(each)) for each in found
    )


def _always(approval: call_approvals.Approval) -> str:
    return f"until {grants.format_time(approval.always)}" if approval.always is not None else ""


def _state(approval: call_approvals.Approval) -> str:
    state = call_approvals.state_of(approval)
    if state != "pending":
        return f"{state}, {approval.outcome}" if approval.outcome else state
    left = call_approvals.left(approval) // dt.timedelta(seconds=1)
    return f"{left // _MINUTE} min left" if left >= _MINUTE else f"{left} s left"


def _show(options: dict[str, Any]) -> Iterator[str]:
    detail = call_approvals.detail(options["approval"])
    approval = detail.approval
    yield f"{approval.key}: {approval.agent} calls {approval.tool}, {_state(approval)}."
    for name, value in (("session", approval.session), ("subagent", approval.subagent)):
        if value:
            yield f"  {name}: {value}"
    if approval.asked_by:
        yield f"  called for {approval.asked_by}"
    for rule in detail.rules:
        yield f"  {rule.key}: {gate_rules.in_words(rule)}"
    if approval.needed > 1:
        by = texts.listing(approval.approved_by) or "no one"
        yield f"  needs {approval.needed} people; approved by {by}"
    yield "Arguments:"
    for argument in detail.arguments:
        yield f"  {argument.name}: {_json(argument.value)}{_marks(argument)}"
    for name in detail.removed:
        yield f"  {name}: not given; the last call had it"
    if approval.note:
        yield f"Note for the model: {approval.note}"
    yield f"Shown: {approval.shown}"


def _marks(argument: call_approvals.Argument) -> str:
    marks = []
    if argument.is_edited:
        marks.append(f"edited by an operator, called with {_json(argument.called)}")
    if argument.is_changed:
        marks.append(f"the last call had {_json(argument.before)}")
    if argument.is_new:
        marks.append("the last call did not have it")
    return f"  ({'; '.join(marks)})" if marks else ""


def _approve(options: dict[str, Any]) -> Iterator[str]:
    shown = options["shown"] or call_approvals.find(options["approval"]).shown
    always = dt.timedelta(days=options["days"]) if options["days"] else None
    approval = call_approvals.approve(_write(options), options["approval"], shown, always)
    yield f"Approved {approval.key}: {approval.agent} calls {approval.tool} with {_json(approval.arguments)}."
    if approval.always is not None:
        yield f"The same call is approved automatically {_always(approval)}: approvals revoke {approval.key} ends that."
    if approval.state == "pending":
        left = max(1, approval.needed - len(approval.approved_by))
        yield f"{texts.counted(left, 'approval')} of other people to go."


def _reject(options: dict[str, Any]) -> Iterator[str]:
    approval = call_approvals.reject(_write(options), options["approval"], options["note"])
    yield f"Rejected {approval.key}: {approval.agent} calls {approval.tool}."


def _revoke(options: dict[str, Any]) -> Iterator[str]:
    approval = call_approvals.revoke(_write(options), options["approval"])
    yield f"Revoked {approval.key}: such calls of {approval.tool} by {approval.agent} are asked about again."


def _people(options: dict[str, Any]) -> Iterator[str]:
    found = call_approvals.deciders(options["days"])
    if not found:
        yield "No one decided about a call."
    yield from columns.lines(
        (
            each.name,
            f"{texts.counted(each.decided, 'call')} on {texts.counted(each.days, 'day')}",
            f"{each.approved} approved",
            f"half within {each.median_wait // dt.timedelta(seconds=1)} s",
        )
        for each in found
    )


def _write(options: dict[str, Any]) -> writing.Write:
    return writing.by(getpass.getuser(), via="command", reason=options["reason"])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_ACTS = {
    "list": _list,
    "show": _show,
    "approve": _approve,
    "reject": _reject,
    "revoke": _revoke,
    "people": _people,
}
