"""Questions and log messages of upstream servers during a call, passed on to the client of the call.

Asking the user is granted like a tool: by an entry of the catalog, a member of toolkits with its own switch. Access is
checked when a question arrives, and again before the answer is sent to the server; both are recorded, but not the
question and the answer. The call's time limit does not run while the user answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Coroutine, Hashable, Mapping
from typing import Any, TypeVar

import structlog
from django import db

from toolbelt import conf
from toolbelt.core import admitting, catalog, errors
from toolbelt.core.imported import cleaning
from toolbelt.core.rules import budgets
from toolbelt.plugins import slots
from toolbelt.plugins.upstream import client_features, questions
from toolbelt.runtime import masking
from toolbelt.runtime.calls import gates, incoming, last_checks, log_levels
from toolbelt.runtime.records import recordings
from toolbelt.runtime.surfaces import snapshots
from toolbelt.runtime.upstream import server_notifications
from toolbelt.store import databases, holds

T = TypeVar("T")

# The maximum time of all questions of one call together, in seconds.
MAX_SECONDS = 600.0
# The maximum number of questions of one call, including those of a server that may not ask; further ones are neither
# checked nor recorded.
MAX_QUESTIONS_PER_CALL = 100
# The maximum number of questions in one input_required result.
MAX_QUESTIONS_PER_RESULT = 10
MAX_KEY = 200
# Only the server interprets it.
MAX_STATE = 100_000
# The maximum number of log messages of one call; further ones are dropped.
MAX_LOGGED = 200
MAX_LOG_BYTES = 8_000
MAX_LOGGER = 100


CANCELLED: Mapping[str, Any] = {"action": "cancel"}

RefusedError = client_features.RefusedError

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
# The number of open questions of each plugin in this process.
_open: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_granted(resolved: budgets.Resolution, server: catalog.Plugin) -> bool:
    """Return whether the server may ask the user of this agent now."""
    entry = catalog.elicitation(resolved.context.catalog, server)
    return (
        entry is not None
        and not holds.is_stopped(resolved.context.catalog, entry.key)
        and admitting.not_active(resolved, entry.key) is None
    )


class Features:
    """The features that the client of one call offers to the call's upstream server."""

    def __init__(self, admitted: gates.Admitted, server: catalog.Plugin) -> None:
        self._admitted, self._server, self._client = admitted, server, admitted.gate.caller.client
        self._loop = asyncio.get_running_loop()
        self._entry = catalog.elicitation_key(server)
        # The number of open questions, since when they are open, and how long the answered ones took in total.
        self._asking, self._since, self._answer_seconds = 0, 0.0, 0.0
        self._logged = self._questions = 0

    @property
    def owner(self) -> Hashable:
        """Return a value that is equal for calls of the same client; an unknown client equals no other."""
        return self._client.owner if self._client is not None else self

    @property
    def modes(self) -> frozenset[str]:
        """Return the modes in which the user can be asked."""
        if self._client is None or not self._admitted.may_ask:
            return frozenset()
        return self._client.modes

    @property
    def log_level(self) -> str:
        """Return the lowest level of log messages that the client wants, if it sends one with the call."""
        return self._client.log_level if self._client is not None else ""

    @property
    def resumed(self) -> Mapping[str, Any]:
        """Return the answers and the server's state with which the call is repeated; usually empty."""
        return self._client.resumed if self._client is not None else {}

    def left(self) -> float:
        """Return the remaining seconds of the call. The time stops while a question is open."""
        now = time.monotonic()
        answer_seconds = self._answer_seconds + (now - self._since if self._asking else 0.0)
        return self._admitted.gate.call.deadline + answer_seconds - now

    async def check_answers(self) -> None:
        """Record the answers of a repeated call; raise last_checks.DeniedError if the server may not have them."""
        answers = self.resumed.get("inputResponses") or {None: {"action": "none"}}
        for answer in answers.values():
            recording = self._recording({})
            try:
                await self._check(recording)
            except RefusedError:
                refusal = admitting.Refusal(
                    code="tool-unavailable", message="The server may no longer ask you."
                )
                raise last_checks.DeniedError(refusal, f"{self._entry} is no longer granted.") from None
            await self._end(recording, "ok", f"The user's answer: {answer['action']}.")

    async def elicit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer to a question; raise RefusedError if the user is not asked."""
        return await self._on_the_callers_loop(self._elicit(params))

    async def forward_questions(
        self, required: Mapping[str, Any], *, is_error: bool = False
    ) -> Mapping[str, Any] | None:
        """Return the questions that the client receives instead of the result; None if it is asked here.

        Raise RefusedError if the user is not asked.

        ``is_error``: the server failed the request with the questions.
        """
        if self._client is None or not (self._client.takes_questions or is_error):
            return None
        return await self._on_the_callers_loop(self._forward_questions(required))

    def report_would_ask(self) -> None:
        """Record that the server would ask if it could, for an operator to review."""
        server_notifications.report_would_ask(self._server.name)

    async def log(self, params: Mapping[str, Any]) -> None:
        """Pass on a log message of the server."""
        self._logged += 1
        if self._client is None or self._logged > MAX_LOGGED:
            return
        message = _log_message(params, self._server.namespace or self._server.name)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._client.log, message)

    async def _on_the_callers_loop(self, work: Coroutine[Any, Any, T]) -> T:
        if asyncio.get_running_loop() is self._loop:
            return await work
        try:
            asking = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            # The caller's loop is closed, so no user can be asked.
            work.close()
            raise RefusedError from None
        return await asyncio.wrap_future(asking)

    async def _elicit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._questions += 1
        if self._questions > MAX_QUESTIONS_PER_CALL:
            raise RefusedError
        recording = self._recording(params)
        async with self._recorded(recording):
            client, question, client_question = await self._checked(recording, params)
            if not _enter(self._server.name, self._admitted.gate.call.key.agent):
                await self._end(recording, "tool-unavailable", "Too many questions of this server are open.")
                return CANCELLED
            try:
                response = await self._ask_client(client, client_question)
            except TimeoutError:
                await self._end(recording, "timed-out", "The user did not answer in time.")
                return CANCELLED
            finally:
                _leave(self._server.name, self._admitted.gate.call.key.agent)
            # If the grant was withdrawn while the user answered, the answer is not sent.
            await self._check(recording)
            answer = questions.answer(response, question)
            await self._end(recording, "ok", f"The user's answer: {answer['action']}.")
            return answer

    async def _ask_client(self, client: incoming.Client, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the client's answer; the call's time stops meanwhile."""
        if not self._asking:
            self._since = time.monotonic()
        self._asking += 1
        try:
            return await asyncio.wait_for(client.ask(question), MAX_SECONDS - self._answer_seconds)
        finally:
            self._asking -= 1
            if not self._asking:
                self._answer_seconds += time.monotonic() - self._since

    async def _forward_questions(self, required: Mapping[str, Any]) -> Mapping[str, Any]:
        requests = required.get("inputRequests") or {}
        if len(requests) > MAX_QUESTIONS_PER_RESULT:
            raise RefusedError
        forwarded: dict[str, Any] = {}
        if not requests:
            # No question, but the client has to repeat the call.
            await self._check(self._recording({}))
        for key, request in requests.items():
            if (
                request.get("method") != "elicitation/create"
                or cleaning.has_hidden(key)
                or len(key) > MAX_KEY
            ):
                raise RefusedError
            recording = self._recording(request["params"])
            async with self._recorded(recording):
                _, _, client_question = await self._checked(recording, request["params"])
                await self._end(recording, "ok", "The question was handed to the client.")
            forwarded[key] = {"method": "elicitation/create", "params": client_question}
        result: dict[str, Any] = {"resultType": "input_required", "inputRequests": forwarded}
        if isinstance(state := required.get("requestState"), str):
            if len(state) > MAX_STATE:
                raise RefusedError
            result["requestState"] = state
        return result

    async def _checked(
        self, recording: recordings.Recording, params: Mapping[str, Any]
    ) -> tuple[incoming.Client, Mapping[str, Any], Mapping[str, Any]]:
        """Return the client, the question, and the form in which the client shows it; raise RefusedError, with the
        reason recorded.
        """
        await self._check(recording)
        try:
            mode = questions.mode(params)
            if self._client is None or mode not in self._client.modes:
                await self._end(
                    recording, "tool-unavailable", f"The client of this call cannot ask its user by {mode}."
                )
                raise RefusedError
            question = questions.cleaned(params, self._server.title or self._server.name)
        except questions.NotAllowedError as error:
            await self._end(recording, "invalid-arguments", str(error))
            raise RefusedError from error
        client_question = questions.for_revision(masking.mask_value(question), self._client.revision)
        if client_question is None:
            await self._end(
                recording, "tool-unavailable", "The client's revision of MCP has no such questions."
            )
            raise RefusedError
        return self._client, question, client_question

    async def _check(self, recording: recordings.Recording) -> None:
        """Raise RefusedError if the server may not ask this user now."""
        refusal = await self._admitted.gate.in_thread(_refusal, recording, self._admitted)
        if refusal is not None:
            outcome = refusal.code if refusal.code == "tool-unavailable" else "tool-denied"
            await self._end(
                recording, outcome, f"The server may not ask this user: {refusal.without_values()}"
            )
            raise RefusedError

    @contextlib.asynccontextmanager
    async def _recorded(self, recording: recordings.Recording) -> AsyncIterator[None]:
        """Record a question that ends other than by an answer or a refusal."""
        try:
            yield
        except RefusedError:
            raise
        except asyncio.CancelledError:
            await asyncio.shield(
                self._end(recording, "cancelled", "The call ended before the user answered.")
            )
            raise
        except Exception as error:
            _log.exception("question of an upstream server failed", plugin=recording.plugin)
            await self._end(recording, "tool-failed", f"{type(error).__name__}: {error}")
            raise RefusedError from error

    async def _end(self, recording: recordings.Recording, outcome: str, error: str) -> None:
        await self._admitted.gate.in_thread(recording.end, outcome, error=error)

    def _recording(self, params: Mapping[str, Any]) -> recordings.Recording:
        mode = "url" if params.get("mode") == "url" else "form"
        return recordings.Recording(
            key=self._admitted.gate.call.key,
            tool=self._entry,
            plugin=self._server.name,
            person=self._admitted.gate.caller.person_name,
            arguments={"tool": self._admitted.gate.recording.tool, "mode": mode},
        )


def _refusal(recording: recordings.Recording, admitted: gates.Admitted) -> admitting.Refusal | None:
    """Return why the server may not ask, by the current state of the database; None if it may."""
    try:
        admitted.gate.caller.may_call()
        snapshot, state = snapshots.take(recording.key)
        recording.note_state(snapshot, state.number)
        plugin = snapshot.catalog.plugins.get(admitted.plugin)
        entry = catalog.elicitation(snapshot.catalog, plugin) if plugin is not None else None
        if entry is None:
            server_notifications.report_would_ask(admitted.plugin)
            return admitting.unknown(recording.tool)
        recording.tool = entry.key
        if holds.is_stopped(snapshot.catalog, entry.key):
            return gates.stopped(entry.key)
        resolved = budgets.resolve(snapshot)
        refusal = admitting.not_active(resolved, entry.key)
        recording.note_decision(resolved, is_refused=refusal is not None)
        return refusal
    except errors.ToolbeltError:
        return admitting.unknown(recording.tool)
    except db.Error as error:
        raise last_checks.UncheckedError(str(error)) from error
    finally:
        databases.release()


def _enter(plugin: str, agent: str) -> bool:
    """Take one of a plugin's slots for open questions: half of its slots for calls, because questions delay those."""
    with _lock:
        of_plugin = _open[plugin]
        if not slots.has_room(of_plugin[agent], of_plugin.total(), max(1, conf.CALLS_PER_PLUGIN // 2)):
            return False
        of_plugin[agent] += 1
    return True


def _leave(plugin: str, agent: str) -> None:
    with _lock:
        _open[plugin][agent] -= 1
        _open[plugin] += Counter()  # without zeros


def _log_message(params: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a log message for a client: without secrets, bounded, and with its origin."""
    logger = params.get("logger")
    logger_name = cleaning.line(logger, MAX_LOGGER) if isinstance(logger, str) else ""
    level = params.get("level")
    data = masking.mask_value(params.get("data"))
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    if isinstance(data, str) or len(text) > MAX_LOG_BYTES:
        data = cleaning.text(text, MAX_LOG_BYTES)
    return {
        "level": level if level in log_levels.LEVELS else "info",
        "logger": f"{namespace}.{logger_name}" if logger_name else namespace,
        "data": data,
    }
