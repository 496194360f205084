"""The test kit for toolkits, plugins and configurations, for this project and others.

``RowsWorld`` runs scenarios (see toolbelt.core.scenarios) through the database, `control` and `runtime`; ``switched``
and ``overridden`` set a switch or override during a test, and ``at`` sets the current time. For tools that the agent's
own program runs, ``declared`` creates a plugin with approved tools, and ``admitted`` runs a block as an admitted call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from django.test import override_settings

from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts as belt_files
from toolbelt.control.servers import approvals, client_plugins, decisions
from toolbelt.core import admitting, belts, errors, facts, meta_tools, scenarios, surface
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces
from toolbelt.runtime.calls import gates, last_checks, own_tools
from toolbelt.store import clock, snapshots
from toolbelt.store import entries as rows

# Has a call admitted that the agent's own program runs, runs the block, and reports its outcome.
admitted = gate.admitted

OPERATOR = writing.by("test", via="system", kind="person")


class RowsWorld:
    """Runs scenarios like operators and agents: belts are imported, and requests go through ``runtime``.

    A lenient belt is written to the database without validation, as raw SQL or a fixture could. Requires an empty
    database.
    """

    def at(self, now: datetime) -> AbstractContextManager[None]:
        """Set the current time within the block."""
        return at(now)

    @contextmanager
    def limited(self, identical_calls: int) -> Iterator[None]:
        """Set the limit on identical calls within the block, for the whole process."""
        with override_settings(TOOLBELT_IDENTICAL_CALLS=identical_calls):
            yield

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None:
        """Store a whole configuration."""
        if not lenient:
            belts.load(dict(belt))
            if not belts.check(dict(belt)):
                belt_files.import_(OPERATOR.replace(confirm=True), belt, is_state=True)
                return
            # A scenario may state what is refused on saving, such as a pattern with a * in the middle.
        document = belts.dump(belts.load(dict(belt), lenient=True))
        for section, kind in belt_files.SECTIONS.items():
            for entry in document.get(section, ()):
                rows.write(kind, {"name": entry} if kind == "category" else entry)

    def edit(self, changes: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None:
        """Make an operator's changes through ``control``."""
        for section, edited in changes.items():
            kind = belt_files.SECTIONS[section]
            for entry in edited:
                name = entry[entries.name_field(kind)]
                is_new = name not in rows.names(kind)
                if facts.observed(kind, entry) or (lenient and not is_new):
                    # A scenario states what is observed, too.
                    rows.write(kind, entry if is_new else {**entries.read(kind, name), **entry})
                elif is_new:
                    entries.put(OPERATOR, kind, entry)
                else:
                    entries.change(OPERATOR.replace(confirm=True), kind, name, entry)

    def surface(self, key: gate.RequestKey, message: str | None) -> surface.Surface:
        """Return a surface through ``runtime``."""
        return surfaces.of(key, message)

    def call(self, key: gate.RequestKey, tool: str, arguments: Any) -> Mapping[str, Any]:
        """Call a tool through ``runtime``. A tool that may be called is not actually run."""
        if tool in meta_tools.DEFINITIONS:
            result = own_tools.call(key, tool, arguments)
            if isinstance(result, admitting.Refusal):
                return result.document()
            return {"is_error": False, **result.content}
        answer = _admitted(gate.Call(key=key, tool=tool, arguments=arguments))
        return answer.document() if isinstance(answer, admitting.Refusal) else {"is_error": False}

    def decide(self, agent: str, tool: str, by: str, note: str | None) -> None:
        """Approve the call of this agent and tool that was asked about last, as this person; with a note, reject it."""
        latest = next(iter(call_approvals.listed(agents=[agent], tool=tool)), None)
        if latest is None:
            raise errors.NotFound("approval", f"{agent} {tool}")
        write = writing.by(by, via="screen")
        if note is None:
            call_approvals.approve(write, latest.key, latest.shown)
        else:
            call_approvals.reject(write, latest.key, note)


def _admitted(call: gate.Call) -> admitting.Admission | admitting.Refusal:
    """Admit a call as if its tool ran next: it is counted, and what people approved is spent."""
    call_gate = gates.CallGate(call, may_ask=True)
    snapshot, resolved, state = call_gate.resolve()
    admission = call_gate.admit(resolved, snapshot)
    if isinstance(admission, admitting.Refusal) or not (call_gate.is_due or admission.approval):
        return admission
    try:
        last_checks.check_again(
            gates.Admitted(
                gate=call_gate,
                definition=snapshot.catalog.tools[admission.tool],
                server=None,
                state=state,
                options=admission.options,
                approval=admission.approval,
            )
        )
    except last_checks.DeniedError as denied:
        return denied.refusal
    return admission


def run_through_rows(scenario: Mapping[str, Any]) -> list[scenarios.Failure]:
    """Run a scenario through the database, `control` and `runtime`. Return the expectations that failed."""
    return list(scenarios.run(scenario, RowsWorld()))


def at(now: datetime) -> AbstractContextManager[None]:
    """Set the current time within the block, for the whole process: switches with an earlier expiry have expired."""
    return clock.stopped(now)


def declared(plugin: str, tools: Sequence[Mapping[str, Any]], *, namespace: str = "") -> Sequence[str]:
    """Declare these tools for a plugin that the agent's own program runs, and approve them; return their keys.

    The plugin is created if it does not exist. Each tool is a mapping as in :func:`client_plugins.declare`.
    """
    if plugin not in rows.names("plugin"):
        entries.create(
            OPERATOR, "plugin", {"name": plugin, **({"namespace": namespace} if namespace else {})}
        )
    client_plugins.declare(OPERATOR, plugin, tools)
    changes = approvals.review(plugin).to_review
    decisions.approve(OPERATOR, {change.key: change.version_hash for change in changes}, plugin=plugin)
    stored = snapshots.catalog()
    return [key for key in stored.tools_of_plugin.get(plugin, ()) if not stored.tools[key].retired]


@contextmanager
def switched(agent: str, toolkit: str, on: bool | None) -> Iterator[None]:
    """Set the agent's switch of ``toolkit`` within the block, and restore it afterwards."""
    before = snapshots.find(agent, None).agent.switches.get(toolkit)
    switches.flip(OPERATOR.replace(confirm=True), agent, toolkit, on)
    try:
        yield
    finally:
        switches.flip(OPERATOR.replace(confirm=True), agent, toolkit, before)


@contextmanager
def overridden(agent: str, tool: str, on: bool | None) -> Iterator[None]:
    """Set the agent's override of ``tool`` within the block, and restore it afterwards."""
    before = snapshots.find(agent, None).agent.overrides.get(tool)
    switches.override(OPERATOR.replace(confirm=True), agent, tool, on)
    try:
        yield
    finally:
        switches.override(OPERATOR.replace(confirm=True), agent, tool, before)
