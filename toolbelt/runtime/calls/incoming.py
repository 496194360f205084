"""A call as it arrives: what is called, for which request, and by whom."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolbelt import conf
from toolbelt.core import request_key
from toolbelt.plugins.upstream import calling, results
from toolbelt.runtime.surfaces import request_contexts

RequestKey = request_key.RequestKey
Progress = calling.Progress
# Reads the current state for a call on an event loop. Returns None if that needs a thread, or the call is not allowed.
Probe = Callable[[], Awaitable[request_contexts.RequestContext | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, or with another ``method`` of MCP, a request for a prompt or a resource.

    ``version`` is the version of the tool that the agent's own program has; empty: the one that agents have.
    ``by_dispatch``: the agent has ``call_tool`` instead of the meta-tools that load (see toolbelt.core.dispatch).
    ``keeps_call_tool``: it has that also while there is nothing to load, because its list never changes; ``told`` are
    then the tools that its model was told of, and that it may no longer have.
    ``by_host``: an MCP client calls, which may do so for the screen of a server, by the server's own name of the tool.
    ``conversation`` is the token of the conversation that it is made in; it decides how a refusal is worded.
    ``progress`` is called with the progress of an upstream server's tool, on the event loop of those servers.
    ``begun`` is when it arrived, on the monotonic clock, and ``seconds`` is how long it may take. ``wait`` is how long
    it waits in addition for people to approve it, in seconds.
    """

    key: RequestKey
    tool: str
    arguments: Any
    version: str = ""
    method: str = results.CALL
    by_dispatch: bool = False
    keeps_call_tool: bool = False
    told: Collection[str] = ()
    by_host: bool = False
    conversation: str = ""
    progress: Progress | None = None
    begun: float = field(default_factory=time.monotonic)
    seconds: float = field(default_factory=lambda: conf.CALL_SECONDS)
    wait: float = 0.0

    @property
    def deadline(self) -> float:
        """Return when it must have ended, on the monotonic clock."""
        return self.begun + self.seconds


class Client(Protocol):
    """The client of a call, as the interface knows it. Its methods are called on the event loop of the call."""

    @property
    def owner(self) -> Hashable:
        """Return a value that is equal for calls of the same client."""

    @property
    def revision(self) -> str:
        """Return its revision of MCP."""

    @property
    def modes(self) -> frozenset[str]:
        """Return the modes in which its user can be asked (form, url); empty if there are none."""

    @property
    def log_level(self) -> str:
        """Return the level of log messages that it requests with the call; empty if it requests none."""

    @property
    def resumed(self) -> Mapping[str, Any]:
        """Return the answers and the server's state with which the call is repeated; usually empty."""

    @property
    def takes_questions(self) -> bool:
        """Return whether a result may contain questions, after which the client repeats the call with answers."""

    async def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer, as an MCP result."""

    @property
    def log(self) -> Callable[[Mapping[str, Any]], None]:
        """Return the callback for log messages, which is called on the event loop of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, as the interface knows; by default, a program in this process.

    ``may_call`` is called directly before the tool runs, in a thread that may block, and raises an error if the caller
    may no longer call, for example because its token was revoked. With ``probe``, the state and the token are read on
    the event loop, and threads are used only for work that takes long, or whose data is not cached in this process.
    ``client`` is the client behind the call, whose user a tool of an upstream server may have questions for.
    ``client_session`` is a digest of the session that an MCP client has of its own: without a session of Toolbelt's,
    the state that an upstream server keeps for a connection is that client's. ``operator`` is the user whose token
    makes the call, who may not approve it; empty: an agent's token, or none. ``person`` is for whom a client calls that
    signed in (by primary key): their own accounts at servers are used, the record has their ``person_name``, and they
    may not approve the call either.
    ``on_wait`` is called with True when the call begins to wait for people to approve it, and with False when it no
    longer does.
    """

    may_call: Callable[[], object] = lambda: None
    probe: Probe | None = None
    client: Client | None = None
    client_session: str = ""
    operator: str = ""
    person: int | None = None
    person_name: str = ""
    on_wait: Callable[[bool], object] = lambda is_waiting: None

    @property
    def user(self) -> str:
        """Return the name of the user whose token or client makes the call; empty if there is none."""
        return self.operator or self.person_name


PROGRAM = Caller()
