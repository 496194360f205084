"""The features that the client of a call offers to the server: questions to its user, and log messages.

A server's question or message is matched to a running call. Over HTTP it arrives on the call's own stream, and the
client passes the context of the request on. Otherwise it is only matched if that is unambiguous: there is one running
call on the connection, or all of them belong to the same client.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from toolbelt.plugins.upstream import results

if TYPE_CHECKING:
    import mcp_types
    from mcp.client.session import ClientRequestContext

# The name of the capability.
ELICITATION = "elicitation"
MAX_ROUNDS = 10
# The pause before a request is repeated that returned only a state, without questions.
STATE_ONLY_SECONDS = 0.25


class ClientFeatures(Protocol):
    """The client of a call. Its methods are called on the connections' event loop."""

    @property
    def owner(self) -> Hashable:
        """Return a value that is equal for calls whose questions go to the same client."""

    @property
    def modes(self) -> frozenset[str]:
        """Return the modes in which the user can be asked (form, url); empty if there are none."""

    @property
    def log_level(self) -> str:
        """Return the lowest level of log messages that a server from 2026-07-28 may send; empty for none."""

    @property
    def resumed(self) -> Mapping[str, Any]:
        """Return the answers and the state of a repeated call, as MCP's parameters; usually empty."""

    async def elicit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer to a question. Raise RefusedError if the user is not asked."""

    async def forward_questions(
        self, required: Mapping[str, Any], *, is_error: bool = False
    ) -> Mapping[str, Any] | None:
        """Return the questions that the client receives instead of the result, and repeats the request with answers.

        Return None if :meth:`elicit` asks them instead. ``is_error``: the server failed the request with them, so every
        client receives them. Raise RefusedError if the user is not asked.
        """

    def report_would_ask(self) -> None:
        """Record that the server refused the call because it may not ask the user."""

    async def log(self, params: Mapping[str, Any]) -> None:
        """Pass on a log message of the server."""


class RefusedError(Exception):
    """The user is not asked. The server gets the same error as from a client without this feature."""


@dataclass(eq=False, slots=True, kw_only=True)
class RunningCall:
    """One call, with the features of its client. Its time limit is suspended while the user is asked."""

    features: ClientFeatures | None
    limit: asyncio.Timeout
    seconds: float
    has_ended: bool = False
    _asking: set[asyncio.Future[Mapping[str, Any]]] = field(default_factory=set)

    async def elicit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a question of the server; a cancellation if the call has ended."""
        if self.features is None or self.has_ended:
            raise RefusedError
        asking = asyncio.ensure_future(self.features.elicit(params))
        self._asking.add(asking)
        self.restart_limit()
        try:
            await asyncio.wait({asking})
            return {"action": "cancel"} if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            self._asking.discard(asking)
            self.restart_limit()

    def restart_limit(self) -> None:
        """Restart the time limit. There is none while the user is asked, which the caller limits."""
        when = None if self._asking else asyncio.get_running_loop().time() + self.seconds
        # The limit may have expired.
        with contextlib.suppress(RuntimeError):
            self.limit.reschedule(when)

    def end(self) -> None:
        """Cancel open questions."""
        self.has_ended = True
        for asking in self._asking:
            asking.cancel()


# The call whose request is being sent, or on whose stream a message arrived.
CURRENT: contextvars.ContextVar[RunningCall | None] = contextvars.ContextVar(
    "toolbelt_client_features", default=None
)


class Calls:
    """The running calls on one connection."""

    def __init__(self) -> None:
        self._calls: list[RunningCall] = []

    @contextlib.contextmanager
    def entered(self, call: RunningCall) -> Iterator[None]:
        """Include a call while it runs."""
        token = CURRENT.set(call)
        self._calls.append(call)
        try:
            yield
        finally:
            CURRENT.reset(token)
            self._calls.remove(call)
            call.end()

    def current(self) -> RunningCall | None:
        """Return the call that the current message belongs to; None if that is ambiguous."""
        if (current := CURRENT.get()) is not None:
            return current
        owners = {call.features.owner if call.features is not None else None for call in self._calls}
        return self._calls[0] if len(owners) == 1 else None

    async def elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """Answer a server's ``elicitation/create``. (The callback of the official client.)"""
        import mcp_types

        current = self.current()
        if current is None:
            return unsupported()
        try:
            answer = await current.elicit(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        except RefusedError:
            return unsupported()
        return mcp_types.ElicitResult.model_validate(answer)

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """Pass on a server's ``notifications/message``. (The callback of the official client.)"""
        current = self.current()
        if current is not None and current.features is not None and not current.has_ended:
            await current.features.log(params.model_dump(by_alias=True, mode="json", exclude_none=True))


class PagesRequiredError(Exception):
    """The server failed a request because the user has to open pages first. (-32042 of MCP 2025-11-25)

    ``required`` are these questions in the form of an ``input_required`` result, and ``refusal`` is the error without
    them.
    """

    def __init__(self, required: Mapping[str, Any], refusal: Exception) -> None:
        self.required, self.refusal = required, refusal
        super().__init__(str(refusal))


def required_pages(error: Any, features: ClientFeatures | None) -> Mapping[str, Any] | None:
    """Return the questions of an error, in the form of an ``input_required`` result; None if it has none to pass on."""
    import mcp_types

    if features is None or "url" not in features.modes or error.code != mcp_types.URL_ELICITATION_REQUIRED:
        return None
    pages = error.data.get("elicitations") if isinstance(error.data, Mapping) else None
    if not isinstance(pages, list) or not pages or not all(_is_page(page) for page in pages):
        return None
    return {
        "resultType": results.INPUT_REQUIRED,
        "inputRequests": {
            f"page{number}": {"method": "elicitation/create", "params": page}
            for number, page in enumerate(pages, 1)
        },
    }


def _is_page(page: Any) -> bool:
    return isinstance(page, Mapping) and page.get("mode") == "url"


def prepare(params: Any, features: ClientFeatures, more: Mapping[str, Any]) -> None:
    """Add to the parameters of a request what its client wants and has answered. (From 2026-07-28)"""
    import mcp_types

    if features.log_level:
        params.meta = cast("Any", {mcp_types.LOG_LEVEL_META_KEY: features.log_level})
    if more:
        added = mcp_types.InputResponseRequestParams.model_validate(more, by_name=False)
        params.input_responses, params.request_state = added.input_responses, added.request_state


@functools.cache
def result_type(plain: Any) -> Any:
    """Return the type of results of this plain type whose client may be asked for input."""
    import mcp_types
    import pydantic

    return pydantic.TypeAdapter(plain | mcp_types.InputRequiredResult)


def is_input_required(result: Mapping[str, Any]) -> bool:
    """Return whether a result of this type has valid questions and a valid state."""
    import mcp_types
    import pydantic

    try:
        mcp_types.InputRequiredResult.model_validate(result, by_name=False)
    except pydantic.ValidationError:
        return False
    return True


async def answers(required: Mapping[str, Any], features: ClientFeatures) -> dict[str, Any]:
    """Ask the user what a result requires, and return the parameters with which the call is repeated.

    Raise RefusedError if the user is not asked, or something other than answers is required.
    """
    requests = required.get("inputRequests") or {}
    if any(request["method"] != "elicitation/create" for request in requests.values()):
        raise RefusedError
    if not requests:
        await asyncio.sleep(STATE_ONLY_SECONDS)
    answered = await asyncio.gather(*(features.elicit(request["params"]) for request in requests.values()))
    more: dict[str, Any] = {"inputResponses": dict(zip(requests, answered, strict=True))}
    if required.get("requestState") is not None:
        more["requestState"] = required["requestState"]
    return more


def requires_elicitation(error: Any) -> bool:
    """Return whether an error means that the server would ask the user if it could."""
    import mcp_types

    if error.code == mcp_types.URL_ELICITATION_REQUIRED:
        return True
    needed = error.data.get("requiredCapabilities") if isinstance(error.data, Mapping) else None
    return (
        error.code == mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY
        and isinstance(needed, Mapping)
        and ELICITATION in needed
    )


def unsupported() -> mcp_types.ErrorData:
    """Return the error of a client that has not announced elicitation."""
    import mcp_types

    return mcp_types.ErrorData(code=mcp_types.INVALID_PARAMS, message="Elicitation not supported")
