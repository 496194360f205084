"""A call by an MCP client, with progress notifications and cancellation."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any

import structlog

from toolbelt.core import admitting as rules
from toolbelt.core import meta_tools
from toolbelt.mcp import authorization, logging, protocol, request_head
from toolbelt.runtime import availability, calls, credentials, threads
from toolbelt.runtime.calls import incoming, prompts_and_resources
from toolbelt.runtime.surfaces import request_contexts

Client = incoming.Client

# How many notifications wait for a client that does not read; beyond that, the oldest are dropped.
MAX_WAITING = 64


def client_session(head: request_head.RequestHead) -> str:
    """Return a digest that identifies the client's own session; empty if it has none."""
    if not head.client_session:
        return ""
    return hashlib.sha256(f"{head.token} {head.client_session}".encode()).hexdigest()[:32]


@dataclass(eq=False, slots=True, kw_only=True)
class OngoingCall:
    """One call, its caller, and the messages for its client. ``wakeup`` is set when there is something to send, and
    when something else needs the attention of the task that waits for the call.

    ``target`` is the prompt or resource that it requests instead of a tool. ``contexts`` reads the state of the caller,
    and ``context`` is its state when the call arrived. ``client`` is the client as the server may ask it, and
    ``requests`` are the questions to it. ``log`` receives the server's messages. ``round`` counts how often the client
    repeated the call to wait for its approval, and ``is_waiting`` is whether it waits for that now.
    """

    head: request_head.RequestHead
    bearer: credentials.Bearer
    call: calls.Call
    target: prompts_and_resources.Target | None = None
    progress_token: protocol.Id | None = None
    contexts: request_contexts.RequestContexts | None = None
    context: request_contexts.RequestContext | None = None
    wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[bytes] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    client: Client | None = None
    log: logging.Log | None = None
    round: int = 0
    is_waiting: bool = False

    @property
    def tool_name(self) -> str:
        """Return the name of the called tool, which may be an argument of ``call_tool``."""
        call = self.call
        name = call.arguments.get("tool") if call.by_dispatch and call.tool == meta_tools.CALL else None
        return name if isinstance(name, str) else call.tool

    async def run(self) -> calls.Answer:
        """Run the call. Raise ProtocolError if the token may not make it. Cancelling this cancels the tool."""
        request_id, loop = self.call.key.request_id, asyncio.get_running_loop()
        structlog.contextvars.bind_contextvars(request_id=request_id, bearer=self.bearer.name)

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            # Called on the event loop of the upstream servers.
            loop.call_soon_threadsafe(self._notify_progress, progress, total, message)

        if self.bearer.user is not None:
            await threads.run(authorization.check_call, self.bearer, self.head.agent)
        call = self.call
        if self.progress_token is not None:
            call = dataclasses.replace(call, progress=progress)
        if self.target is not None:
            return await prompts_and_resources.request(call, self.target, self.caller())
        return await calls.answer(call, self.caller())

    def caller(self) -> calls.Caller:
        """Return the caller, for the gate: the checks of this client, and what identifies its session."""
        return calls.Caller(
            may_call=self._check_token,
            probe=self._probe,
            client=self.client,
            client_session=client_session(self.head),
            operator=self.bearer.name if self.bearer.kind == "operator" else "",
            person=self.bearer.user if self.bearer.is_client else None,
            person_name=self.bearer.person,
            on_wait=self._note_wait,
        )

    def _note_wait(self, is_waiting: bool) -> None:
        self.is_waiting = is_waiting

    async def _probe(self) -> request_contexts.RequestContext | None:
        """Return the state of this call's token, agent and session. None if only a thread can read it."""
        if self.contexts is None or self.bearer.kind == "operator":
            return None
        context, self.context = self.context, None
        if context is not None and not request_contexts.may_be_named(
            self.call.key.request_id, context.probed.state
        ):
            # It was just read. It is read again directly before the tool runs.
            return context
        return await self.contexts.of(self.head.token, self.call.key)

    def _check_token(self) -> None:
        """Raise ProtocolError if the token may no longer make this call; it may be revoked while the call waits."""
        authorization.check_call(
            authorization.authenticate(self.head.token, self.head.agent), self.head.agent
        )

    def refusal(self) -> rules.Refusal | None:
        """Return why a call that waited may not continue; None if it may. For a thread that may block.

        Raise ProtocolError if the token may no longer make it.
        """
        self._check_token()
        if self.target is not None:
            return prompts_and_resources.check_again(self.call, self.target)
        return calls.check_again(self.call, self.caller())

    def take_messages(self) -> list[bytes]:
        """Return and remove the messages for the client."""
        self.wakeup.clear()
        messages, self.waiting, self.requests = self.waiting + self.requests, [], []
        return messages

    def request(self, message: bytes) -> None:
        """Add a request for the client. Unlike notifications, requests are never dropped."""
        self.requests.append(message)
        self.wakeup.set()

    def notify(self, message: bytes) -> None:
        """Add a notification for the client. If too many wait, the oldest are dropped."""
        self.waiting.append(message)
        del self.waiting[:-MAX_WAITING]
        self.wakeup.set()

    def _notify_progress(self, progress: float, total: float | None, message: str | None) -> None:
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notify(protocol.notification(protocol.PROGRESS, params))


def answer_of(task: asyncio.Task[calls.Answer]) -> calls.Answer:
    """Return the answer to a call that has ended. Raise ProtocolError."""
    try:
        return task.result()
    except asyncio.CancelledError:
        raise protocol.ProtocolError(protocol.CANCELLED, "The request was cancelled.") from None
    except protocol.ProtocolError:
        raise
    except Exception as error:
        if availability.classify(error) is None:
            raise
        # The database is only queried before the tool runs.
        return calls.unchecked()
