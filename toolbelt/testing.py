"""What do tests of toolkits, plugins and configurations need? The test kit, for this project and for others'.

``RowsWorld`` runs scenarios (see toolbelt.core.scenarios) through rows and the two doors; ``switched`` and
``overridden`` set a switch or override for the length of a test, and within ``at`` it is another moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from toolbelt.control import actors, entries, switches
from toolbelt.control import belts as belt_files
from toolbelt.core import belts, calls, meta_tools, scenarios, surface
from toolbelt.runtime import calls as gate
from toolbelt.runtime import meta_tools as own_tools
from toolbelt.runtime import surfaces
from toolbelt.store import clock, snapshots
from toolbelt.store import entries as rows

ACTOR = actors.Actor(name="test", via="system")


class RowsWorld:
    """The road that operators and agents take: a belt is imported, questions go through ``runtime``.

    A lenient belt is written as rows behind the validator's back, as raw SQL or a fixture could have done.
    Needs an empty database.
    """

    def at(self, now: datetime) -> AbstractContextManager[None]:
        """Let it be this moment within the block."""
        return at(now)

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None:
        """Store a whole configuration."""
        if not lenient:
            belt_files.import_(ACTOR, belt)
            return
        document = belts.dump(belts.load(dict(belt), lenient=True))
        for section, kind in belt_files.SECTIONS.items():
            for entry in document.get(section, ()):
                rows.write(kind, {"name": entry} if kind == "category" else entry)

    def edit(self, changes: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None:
        """Make an operator's changes through the operators' door."""
        for section, edited in changes.items():
            kind = belt_files.SECTIONS[section]
            for entry in edited:
                name = entry[entries.naming(kind)]
                if name not in rows.names(kind):
                    entries.put(ACTOR, kind, entry)
                elif lenient:
                    rows.write(kind, {**entries.read(kind, name), **entry})
                else:
                    entries.change(ACTOR, kind, name, entry, confirm=True)

    def surface(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        message: str | None,
        subagent: str | None,
    ) -> surface.Surface:
        """Ask through the agents' door."""
        return surfaces.ask(agent, session, request_id, message, subagent)

    def call(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        tool: str,
        arguments: Any,
        subagent: str | None,
    ) -> Mapping[str, Any]:
        """Call through the agents' door; a tool that is admitted is not run."""
        if tool in meta_tools.DEFINITIONS:
            told = own_tools.call(agent, tool, arguments, session, request_id, subagent)
            return told.document() if isinstance(told, calls.Refusal) else {"is_error": False, **told.content}
        answer = gate.admit(agent, tool, arguments, session, request_id, subagent)
        return answer.document() if isinstance(answer, calls.Refusal) else {"is_error": False}


def run_through_rows(scenario: Mapping[str, Any]) -> list[scenarios.Failure]:
    """Run one scenario through rows and the two doors; what did not come out as expected."""
    return list(scenarios.run(scenario, RowsWorld()))


def at(now: datetime) -> AbstractContextManager[None]:
    """Let it be this moment within the block, for everyone in the process: what was given until then is over."""
    return clock.stopped(now)


@contextmanager
def switched(agent: str, toolkit: str, on: bool | None) -> Iterator[None]:
    """Set the agent's switch of ``toolkit`` within the block, and put it back behind it."""
    before = snapshots.find(agent, None).agent.switches.get(toolkit)
    switches.flip(ACTOR, agent, toolkit, on, confirm=True)
    try:
        yield
    finally:
        switches.flip(ACTOR, agent, toolkit, before, confirm=True)


@contextmanager
def overridden(agent: str, tool: str, on: bool | None) -> Iterator[None]:
    """Set the agent's override of ``tool`` within the block, and put it back behind it."""
    before = snapshots.find(agent, None).agent.overrides.get(tool)
    switches.override(ACTOR, agent, tool, on, confirm=True)
    try:
        yield
    finally:
        switches.override(ACTOR, agent, tool, before, confirm=True)
