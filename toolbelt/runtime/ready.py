"""Which answers has this process ready, and may they be given to whoever asks now?

One look at the database says whose token it is, and how agent, catalog and session stand. If a surface is kept that
was worked out from just that, its bytes are kept as well. Whatever is not ready is None here: `surfaces.ask` answers
it, and the next question of the same finds it ready.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import structlog

from toolbelt.core import api_tokens, directives, errors, policy, resolution, surface
from toolbelt.runtime import access, documents, parts, snapshots, surfaces
from toolbelt.store import looks

# How many bytes of answers to keep; one of thirty tools has some 30,000.
MOST_BYTES = 64 << 20
# A longer message is looked through elsewhere: here, everyone else would wait.
LONGEST_MESSAGE = 10_000
# Of agents and sessions with one catalog.
MOST_STANDINGS = 1024

Members = Mapping[str, Sequence[str]]

_log = structlog.get_logger(__name__)


class Question(NamedTuple):
    """A question as it comes over the wire, sound in itself; `surfaces.ask` and `documents.of` say what each means."""

    token: str
    agent: str
    session: str | None = None
    request_id: str | None = None
    subagent: str | None = None
    form: str | None = None
    message: str | None = None
    declared: Mapping[str, str] | None = None


class Answer(NamedTuple):
    """What is answered, to whom, and under which ETag. The bytes are put together when they are wanted."""

    bearer: access.Bearer
    question: Question
    revision: int
    parts: parts.Parts

    @property
    def etag(self) -> str:
        """Give the ETag, in its quotes."""
        return self.parts.etag

    def body(self) -> bytes:
        """Give the surface's document."""
        asked = self.question
        return self.parts.joined(
            request_id=asked.request_id,
            revision=self.revision,
            session=asked.session,
            given=asked.declared,
        )


class _Standing(NamedTuple):
    """Who asks and how things stand, as was seen; and what the surface is kept under that follows."""

    seen: looks.Seen
    bearer: access.Bearer
    snapshot: resolution.Snapshot
    place: tuple[str, surfaces.Slot]


class Answers:
    """The answers that are ready in this process. For one event loop."""

    def __init__(self, eyes: looks.Eyes) -> None:
        self._eyes = eyes
        self._catalog = ""
        self._standings: dict[Hashable, _Standing] = {}
        self._speaking: dict[Hashable, Members | None] = {}
        self._kept: OrderedDict[Hashable, parts.Parts] = OrderedDict()
        self._size = 0
        self._trouble = ""
        self._under_way: dict[Hashable, asyncio.Task[parts.Parts]] = {}

    async def ask(self, question: Question) -> Answer | None:
        """Give the answer, if it is ready, and if whoever sent the token may have it. One query, which reads."""
        if not question.token.isascii() or not question.token.isprintable():
            # No token is, and not every database takes what is not.
            return None
        seen = await self._look(question)
        standing = self._standing(question, seen) if seen is not None else None
        found = await self._parts(question, standing) if standing is not None else None
        if seen is None or standing is None or found is None:
            return None
        return Answer(standing.bearer, question, seen.look.number, found)

    async def close(self) -> None:
        """Let go of the database."""
        await self._eyes.close()

    async def _look(self, question: Question) -> looks.Seen | None:
        try:
            seen = await self._eyes.look(api_tokens.prefix(question.token), question.agent, question.session)
        except looks.Unreachable as error:
            # Once, for the same may be so for a while, and each question finds out.
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("database not looked at from the event loop: Django answers", error=str(error))
            return None
        self._trouble = ""
        return seen

    def _standing(self, question: Question, seen: looks.Seen) -> _Standing | None:
        """Say how things stand for a question: as they stood for the last one, if the same was seen."""
        slot = (question.token, question.agent, question.session, question.subagent)
        known = self._standings.get(slot)
        if known is not None and known.seen == seen and not _may_be_named(question.request_id, seen.look):
            return known if access.admits(seen.token) else None
        bearer = access.admit(question.token, seen.token)
        if bearer is None or (bearer.kind == "agent" and bearer.agent != question.agent):
            return None
        snapshot = snapshots.known(seen.look, question.session, question.request_id, question.subagent)
        if snapshot is None or not _may_ask_for(question.subagent, bearer, snapshot):
            return None
        place = (seen.look.catalog_stamp, surfaces.slot(snapshot, seen.look.agent_stamp))
        found = _Standing(seen, bearer, snapshot, place)
        if not _may_be_named(question.request_id, seen.look):
            self._remember(slot, found)
        return found

    def _remember(self, slot: Hashable, standing: _Standing) -> None:
        if standing.place[0] != self._catalog or len(self._standings) >= MOST_STANDINGS:
            # They hold on to their catalog, which is large: no longer than it is the current one.
            self._standings.clear()
            self._speaking.clear()
            self._catalog = standing.place[0]
        self._standings[slot] = standing

    async def _parts(self, question: Question, standing: _Standing) -> parts.Parts | None:
        snapshot = standing.snapshot
        known, focus = None, None
        if question.message is not None and question.message.strip():
            known = surfaces.known(snapshot, standing.place[1])
            if known is None or len(question.message) > LONGEST_MESSAGE:
                return None
            members = self._members(standing, known)
            if members is None:
                return None
            focus = directives.build(snapshot.catalog, members, known.because, question.message)
        place = (standing.place, question.form, focus and (focus.active_tools, focus.tool_choice))
        if (found := self._kept.get(place)) is not None:
            self._kept.move_to_end(place)
            return found
        known = known or surfaces.known(snapshot, standing.place[1])
        if known is None:
            return None
        try:
            return await self._made(
                place, known, snapshot, question.message if focus else None, question.form
            )
        except errors.ToolbeltError:
            # The format does not take it; whoever answers problems says why.
            return None

    def _members(self, standing: _Standing, known: surface.Surface) -> Members | None:
        """Give the active members of each toolkit that may have something to say about a message.

        None where a plugin's code would be asked, for that may take its time.
        """
        stored = standing.snapshot.catalog
        if standing.place not in self._speaking:
            members = policy.active_members(stored, known.because)
            has_code = any(stored.toolkits[key].plugin for key in members)
            self._speaking[standing.place] = None if has_code else members
        return self._speaking[standing.place]

    async def _made(
        self,
        place: Hashable,
        known: surface.Surface,
        snapshot: resolution.Snapshot,
        message: str | None,
        form: str | None,
    ) -> parts.Parts:
        """Make the parts in a thread, for that takes as long as they are large; once for all who wait for them."""
        task = self._under_way.get(place)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(_parts, known, snapshot, message, form))
            self._under_way[place] = task
            task.add_done_callback(lambda done: self._keep(place, done))
        return await asyncio.shield(task)

    def _keep(self, place: Hashable, done: asyncio.Task[parts.Parts]) -> None:
        del self._under_way[place]
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[place] = done.result()
        self._size += done.result().size
        while self._size > MOST_BYTES:
            self._size -= self._kept.popitem(last=False)[1].size


def answers() -> Answers | None:
    """Give the answers of this installation; None where only Django can read its database."""
    eyes = looks.eyes()
    return None if eyes is None else Answers(eyes)


def _may_be_named(request_id: str | None, look: looks.Look) -> bool:
    """Say whether the session's state may name the request, which may have another surface than all others then.

    Only a backslash can hide a name in the text of the state.
    """
    return (
        request_id is not None and look.state is not None and (request_id in look.state or "\\" in look.state)
    )


def _may_ask_for(subagent: str | None, bearer: access.Bearer, snapshot: resolution.Snapshot) -> bool:
    """Say whether the bearer may ask for a subagent of this kind, as `access.check_subagent` does."""
    return subagent is None or bearer.kind == "operator" or subagent in snapshot.agent.subagent_kinds


def _parts(
    known: surface.Surface, snapshot: resolution.Snapshot, message: str | None, form: str | None
) -> parts.Parts:
    said = known if message is None else surface.of(known.resolution, snapshot, message)
    return parts.cut(documents.of(said, form), f'"{documents.fingerprint(said, form)}"')
