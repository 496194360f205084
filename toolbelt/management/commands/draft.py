"""``manage.py draft [list | show | save | apply | …]``: changes that are kept, tried, and applied as they were seen."""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import getpass
import json
from collections.abc import Callable, Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import drafts, proofs, trials, undo, writing
from toolbelt.control.config import belt_plans
from toolbelt.core import errors, grants, texts
from toolbelt.management import columns, files, terminal


class Command(terminal.Command):
    """List drafts, save a belt or an undo as one, and apply or discard one."""

    help = "List drafts, show one, save a belt or an undo as one, apply it as it was seen, observe it or roll it out."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands; without one, list the drafts."""
        commands = parser.add_subparsers(dest="act", metavar="ACTION")
        commands.add_parser("list", help="list the drafts that are not applied")
        show = commands.add_parser("show", help="print the changes of a draft")
        save = commands.add_parser("save", help="save what applying a belt, or an undo, would change")
        save.add_argument("file", metavar="FILE", nargs="?", help="a belt; - for standard input")
        save.add_argument(
            "--undo", metavar="CHANGE", type=int, help="undo the change with this number, and its batch"
        )
        save.add_argument("--title", metavar="TEXT", default="", help="what it changes, in a few words")
        save.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=drafts.KEPT.days,
            help=f"discard it after N days (default: {drafts.KEPT.days})",
        )
        apply = commands.add_parser("apply", help="make its change, exactly as it was seen")
        apply.add_argument("--confirm", action="store_true", help="confirm a change that is far-reaching")
        discard = commands.add_parser("discard", help="discard a draft")
        observe = commands.add_parser(
            "observe", help="count what it would do to the calls that are made; again: until another end"
        )
        observe.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=trials.DAYS,
            help=f"for N days from now (default: {trials.DAYS})",
        )
        roll_out = commands.add_parser(
            "rollout", help="let it count in some sessions of its agents; apply: in all of them"
        )
        roll_out.add_argument(
            "--percent",
            metavar="P",
            type=int,
            default=trials.PERCENT,
            help=f"in P %% of the sessions (default: {trials.PERCENT})",
        )
        roll_out.add_argument(
            "--agent",
            metavar="AGENT",
            action="append",
            default=[],
            dest="agents",
            help="only for this one of its agents; may be repeated",
        )
        roll_out.add_argument(
            "--days",
            metavar="N",
            type=int,
            default=trials.DAYS,
            help=f"for N days from now, unless it is applied before (default: {trials.DAYS})",
        )
        roll_out.add_argument("--confirm", action="store_true", help="confirm a change that is far-reaching")
        report = commands.add_parser(
            "report", help="print what observing it or rolling it out has counted until now"
        )
        stop = commands.add_parser(
            "stop", help="stop observing it or rolling it out, or do not apply it at its time"
        )
        for command in (show, apply, discard, observe, roll_out, report, stop):
            command.add_argument("draft", metavar="DRAFT", help="its key")
        for command in (save, apply, discard, observe, roll_out, stop):
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str | None, **options: Any) -> None:
        """Run the subcommand."""
        try:
            lines = list(_ACTS[act or "list"](options))
        except errors.Invalid as error:
            if options.get("file") is not None:
                raise files.invalid(error.problems) from error
            raise CommandError(str(error)) from error
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{error} To apply it anyway, add --confirm.") from error
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        for line in lines:
            self.stdout.write(line)


def _list(options: dict[str, Any]) -> Iterator[str]:
    found = drafts.listed(applied=False)
    if not found:
        yield "There are no drafts."
    tried = {trial.draft: trials.WORDS[trial.mode] for trial in trials.running([each.key for each in found])}
    yield from columns.lines(
        (
            str(each.key),
            each.title,
            each.author,
            f"until {grants.format_time(each.ends)}",
            tried.get(each.key, ""),
        )
        for each in found
    )


def _show(options: dict[str, Any]) -> Iterator[str]:
    draft = drafts.find(options["draft"])
    yield f"{draft.title}, by {draft.author} at {grants.format_time(draft.at)}"
    if draft.applied is not None:
        yield f"Applied by {draft.applied_by} at {grants.format_time(draft.applied)}."
    if draft.reason:
        yield f"Reason: {draft.reason}"
    for change in draft.changes:
        yield drafts.describe([change])
        yield f"  before: {_json(change.before)}"
        yield f"  after:  {_json(change.after)}"


def _save(options: dict[str, Any]) -> Iterator[str]:
    file, number = options["file"], options["undo"]
    if (file is None) is (number is None):
        raise CommandError("Name either a belt or --undo CHANGE.")
    act: Callable[[writing.Write], object]
    if file is not None:
        act = functools.partial(belt_plans.apply, document=files.read_belt(file))
    else:
        act = functools.partial(undo.undo_batch, entry_id=number)

    ends = _in_days(options["days"], drafts.MAX_KEPT.days)
    draft = drafts.save(_write(options), act, title=options["title"], ends=ends)
    yield f"Saved {texts.counted(len(draft.changes), 'change')} as {draft.key}: {draft.title}"


def _apply(options: dict[str, Any]) -> Iterator[str]:
    drafts.apply(_write(options).replace(confirm=options["confirm"]), options["draft"])
    yield f"Applied: {drafts.find(options['draft']).title}"


def _discard(options: dict[str, Any]) -> Iterator[str]:
    drafts.discard(_write(options), options["draft"])
    yield "Discarded."


def _observe(options: dict[str, Any]) -> Iterator[str]:
    ends = _in_days(options["days"], trials.MAX_DAYS)
    trial = trials.observe_until(_write(options), options["draft"], ends)
    yield f"Observed until {grants.format_time(trial.ends)}. Nothing changes for agents."


def _roll_out(options: dict[str, Any]) -> Iterator[str]:
    trial = trials.roll_out(
        _write(options).replace(confirm=options["confirm"]),
        options["draft"],
        percent=options["percent"],
        agents=options["agents"],
        ends=_in_days(options["days"], trials.MAX_DAYS),
    )
    yield (
        f"Rolled out to {trial.percent} % of the sessions of {', '.join(trial.agents)}"
        f" until {grants.format_time(trial.ends)}."
    )


def _report(options: dict[str, Any]) -> Iterator[str]:
    trial = trials.latest(drafts.find(options["draft"]).key)
    if trial is None or trial.mode == "schedule":
        raise CommandError(
            "This draft was neither observed nor rolled out: draft observe or rollout does that."
        )
    if trial.mode == "rollout":
        state = "is" if trial.is_running else "was"
        yield f"It {state} rolled out to {trial.percent} % of the sessions of {', '.join(trial.agents)}."
        yield trials.compare(trial.arms)
        if trial.note:
            yield trial.note
        return
    proof = trials.report(trial)
    yield proof.sentence
    yield proof.coverage_sentence
    yield from columns.lines(
        (row.agent, row.tool, proofs.WORDS[row.after], texts.counted(row.calls, "call"), row.words)
        for row in proof.rows
    )
    for rule, calls in trials.observed_rules(trial).items():
        yield f"The observed rule {rule} would have decided {texts.counted(calls, 'call')}."


def _stop(options: dict[str, Any]) -> Iterator[str]:
    trial = trials.stop(_write(options), options["draft"])
    is_back = trial.mode == "rollout"
    yield "Stopped: it counts in no session any more." if is_back else "Stopped. Nothing was changed."


def _in_days(days: int, maximum: int) -> dt.datetime:
    """Return the time in so many days; a later one than allowed for any number above the maximum."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(days=min(max(days, 0), maximum + 1))


def _write(options: dict[str, Any]) -> writing.Write:
    return writing.by(getpass.getuser(), via="command", reason=options["reason"])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


_ACTS: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "list": _list,
    "show": _show,
    "save": _save,
    "apply": _apply,
    "discard": _discard,
    "observe": _observe,
    "rollout": _roll_out,
    "report": _report,
    "stop": _stop,
}
