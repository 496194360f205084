"""Which answers has this process ready, and may they be given to whoever asks now?

One look at the database says whose token it is, and how agent, catalog and session stand. If a surface is kept that
was worked out from just that, its bytes are kept as well. Whatever is not ready is None here: `surfaces.ask` answers
it, and the next question of the same finds it ready.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from toolbelt.core import directives, errors, policy, resolution, surface
from toolbelt.runtime import access, documents, kept, parts, standings, surfaces
from toolbelt.store import looks

# How many bytes of answers to keep; one of thirty tools has some 30,000.
MOST_BYTES = 64 << 20
# A longer message is looked through elsewhere: here, everyone else would wait.
LONGEST_MESSAGE = 10_000

Members = Mapping[str, Sequence[str]]


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

    @property
    def asked(self) -> standings.Asked:
        """Say whose surface is asked for."""
        return standings.Asked(self.token, self.agent, self.session, self.request_id, self.subagent)


class Answer(NamedTuple):
    """What is answered, to whom, and under which ETag. The bytes are put together when they are wanted.

    ``is_stale``: it is the last that is known, and the database cannot be asked whether it still holds.
    """

    bearer: access.Bearer
    question: Question
    revision: int
    parts: parts.Parts
    is_stale: bool = False

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
            is_stale=self.is_stale,
        )


class Answers:
    """The answers that are ready in this process. For one event loop."""

    def __init__(self, eyes: looks.Eyes) -> None:
        self.standings = standings.Standings(eyes)
        self._kept: kept.Kept[parts.Parts] = kept.Kept(MOST_BYTES)

    async def ask(self, question: Question) -> Answer | None:
        """Give the answer, if it is ready, and if whoever sent the token may have it. One query, which reads."""
        standing = await self.standings.of(question.asked)
        found = await self._parts(question, standing) if standing is not None else None
        if standing is None or found is None:
            return None
        return Answer(standing.bearer, question, standing.seen.look.number, found)

    async def last_known(self, question: Question) -> Answer | None:
        """Return the last known answer, marked stale, where the database cannot be looked at; None without one."""
        standing = self.standings.last_known(question.asked) if self.standings.is_blind else None
        if standing is None:
            return None
        # What ended since the last look makes it another surface, which nobody may have asked for yet.
        await asyncio.to_thread(surfaces.resolved, standing.snapshot, standing.seen.look.agent_stamp)
        found = await self._parts(question, standing)
        if found is None:
            return None
        return Answer(standing.bearer, question, standing.seen.look.number, found, is_stale=True)

    async def close(self) -> None:
        """Let go of the database."""
        await self.standings.close()

    async def _parts(self, question: Question, standing: standings.Standing) -> parts.Parts | None:
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
            return found
        known = known or surfaces.known(snapshot, standing.place[1])
        if known is None:
            return None
        try:
            message = question.message if focus else None
            make = functools.partial(_parts, known, snapshot, message, question.form)
            return await self._kept.made(place, make)
        except errors.ToolbeltError:
            # The format does not take it; whoever answers problems says why.
            return None

    def _members(self, standing: standings.Standing, known: surface.Surface) -> Members | None:
        """Give the active members of each toolkit that may have something to say about a message.

        None where a plugin's code would be asked, for that may take its time.
        """
        stored = standing.snapshot.catalog
        speaking = self.standings.derived
        if standing.place not in speaking:
            members = policy.active_members(stored, known.because)
            has_code = any(stored.toolkits[key].plugin for key in members)
            speaking[standing.place] = None if has_code else members
        found: Members | None = speaking[standing.place]
        return found


def answers() -> Answers | None:
    """Give the answers of this installation; None where only Django can read its database."""
    eyes = looks.eyes()
    return None if eyes is None else Answers(eyes)


def _parts(
    known: surface.Surface, snapshot: resolution.Snapshot, message: str | None, form: str | None
) -> parts.Parts:
    said = known if message is None else surface.of(known.resolution, snapshot, message)
    return parts.cut(documents.of(said, form), f'"{documents.fingerprint(said, form)}"')
