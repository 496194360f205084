"""What is sent over HTTP, when is it sent again, and what does an answer mean? All but the sending itself.

A question is asked again where nobody took it: it never writes. A call is not: nobody can know how far it came. A talk
is a generator that asks to send and to pause, and is told what came of it: a loop and a thread can have the same one.
"""

from __future__ import annotations

import json
import urllib.parse
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import httpx

from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

# What a talk asks for, a request or a pause in seconds, and what it is told: the answer, or what kept it from coming.
Asked = dict[str, Any] | float
Told = httpx.Response | httpx.RequestError | None
Talk = Generator[Asked, Told, protocol.Document]

# How many answers to keep, to be told that they still hold.
MOST_KEPT = 64


class Wire:
    """What is sent, when it is sent again, and what an answer means: all but the sending itself."""

    def __init__(self, address: str, agent: str, pauses: Sequence[float]) -> None:
        self._agent, self._pauses = agent, tuple(pauses)
        self._address = f"{address.rstrip('/')}/api/v1/agents/{urllib.parse.quote(agent, safe='')}"
        self._kept: OrderedDict[tuple[protocol.Run, str | None], tuple[str, protocol.Document]] = (
            OrderedDict()
        )

    def asking(
        self, run: protocol.Run, message: str | None, form: str | None, declared: Mapping[str, str] | None
    ) -> Talk:
        """Ask for a surface, again where nobody took the question."""
        # The steps of a run ask the same again and again: what still holds need not be sent again.
        kept = None if message is not None or declared is not None else self._kept.get((run, form))
        asked = self._question(run, message, form, declared, kept[0] if kept else None)
        told = yield asked
        for pause in self._pauses:
            if not _missed(told):
                break
            yield pause
            told = yield asked
        if not isinstance(told, httpx.Response):
            raise protocol.Unreachable(
                f"Toolbelt could not be asked at {self._address}: {_words(told)}."
            ) from told
        if told.status_code == httpx.codes.NOT_MODIFIED and kept:
            return kept[1]
        said = self._read(told, form)
        if asked["method"] == "GET" and "ETag" in told.headers:
            self._kept[run, form] = told.headers["ETag"], said
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return said

    def calling(self, run: protocol.Run, tool: str, arguments: Any) -> Talk:
        """Call a tool, once: a call that was lost may have run."""
        try:
            json.dumps(arguments, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise errors.Invalid([errors.Problem(path="arguments", message=f"not JSON: {error}")]) from error
        said = {**run.document(), "tool": tool, "arguments": arguments}
        told = yield {"method": "POST", "url": self._address + "/calls", "json": said}
        if isinstance(told, httpx.Response):
            return self._read(told, None)
        ran = "It was not sent." if _missed(told) else "It may have run."
        raise protocol.Unreachable(f"The call of {tool} was lost: {_words(told)}. {ran}") from told

    def _question(
        self,
        run: protocol.Run,
        message: str | None,
        form: str | None,
        declared: Mapping[str, str] | None,
        etag: str | None,
    ) -> dict[str, Any]:
        url, asked = self._address + "/surface", {**run.document(), **({"format": form} if form else {})}
        if message is not None or declared is not None:
            more = {"message": message, "declared": declared}
            said = asked | {key: value for key, value in more.items() if value is not None}
            return {"method": "POST", "url": url, "json": said}
        headers = {"If-None-Match": etag} if etag else {}
        return {"method": "GET", "url": url, "params": asked, "headers": headers}

    def _read(self, answer: httpx.Response, form: str | None) -> protocol.Document:
        """Read what was answered; raise what is a problem."""
        try:
            said = answer.json()
        except ValueError:
            said = None
        if not isinstance(said, dict) or not (answer.is_success or "code" in said):
            what = f"{self._address} answered {answer.status_code} and nothing of Toolbelt's"
            raise protocol.Unreachable(f"{what}: is the address right, and is Toolbelt running?")
        if answer.is_success:
            return said
        detail, code = str(said.get("detail", "")), str(said["code"])
        problems = [
            errors.Problem(path=str(one.get("path", "")), message=str(one.get("message", "")))
            for one in said.get("errors", ())
        ] or [errors.Problem(path="", message=detail)]
        match code:
            case "invalid":
                raise errors.Invalid(problems)
            case "provider-limit":
                raise errors.ProviderLimit(form or "", problems)
            case "not-found":
                raise errors.NotFound("agent", self._agent, said.get("nearest", ()))
            case "unauthenticated" | "forbidden":
                raise protocol.NotAllowed(detail, code)
            case "too-many-requests":
                wait = answer.headers.get("Retry-After", "")
                raise protocol.TooMany(detail, int(wait) if wait.isdecimal() else None)
        raise protocol.Unanswered(detail, code)


def _missed(told: Told) -> bool:
    """Say whether a question came to nobody who could answer it."""
    if isinstance(told, httpx.Response):
        return told.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return isinstance(told, httpx.ConnectError | httpx.ConnectTimeout)


def _words(told: Told) -> str:
    return str(told).rstrip(".") or type(told).__name__
