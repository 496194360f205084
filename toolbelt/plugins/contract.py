"""What does a plugin promise, and what is it given? The whole contract, on one page.

A plugin offers tools under its namespace, and runs them. Any of its functions may be ``async`` or plain: async ones
share one event loop for the whole life of the plugin, and must not block it; plain ones each run in a thread of their
own, and there :func:`toolbelt.wait` gives what the async functions of ``runtime`` give. What a plugin needs from
outside comes through ``runtime`` alone, so it runs in a test as on a server. All that it imports of Toolbelt is this::

    from toolbelt import RuntimeAPI, ToolDefinition, ToolError, ToolPlugin
"""

from __future__ import annotations

import abc
import contextlib
import contextvars
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolbelt.core import catalog, errors, schema

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One function that a model can call. ``name`` is its full key: ``<namespace>__<name>``.

    Without a category the tool has its plugin's. ``default_on``: active for agents that have no loadout.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(default_factory=lambda: dict(schema.EMPTY))
    annotations: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    category: str = ""
    default_on: bool = False
    title: str = ""


class ToolPlugin(abc.ABC):
    """A provider of tools. Properties may be class attributes as well: ``name = "kb"``."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The plugin's own name: letters, digits, ``_``, ``.`` or ``-``."""

    @property
    @abc.abstractmethod
    def namespace(self) -> str:
        """What its tools' names begin with, before ``__``. Empty: none, and then their names hold no ``__``."""

    @property
    @abc.abstractmethod
    def tools(self) -> Sequence[ToolDefinition]:
        """What it offers, before and after :meth:`initialize` alike."""

    @abc.abstractmethod
    def execute(self, tool_name: str, args: dict[str, Any]) -> Awaitable[Any] | Any:
        """Run one of its tools with arguments that fit the schema; answer with what JSON can say, a mapping at best.

        Raise :class:`ToolError` to tell the model what went wrong. Any other exception is logged, and not shown to it.
        """

    def initialize(self, runtime: RuntimeAPI) -> Awaitable[None] | None:
        """Get ready. Called once, before the first :meth:`execute`; a plugin that raises here has failed."""
        return None

    def shutdown(self) -> Awaitable[None] | None:
        """Let go of what :meth:`initialize` took. Called once, if that ended well."""
        return None

    @property
    def title(self) -> str:
        """What operators read in place of the name."""
        return ""

    @property
    def description(self) -> str:
        """One sentence for operators."""
        return ""

    @property
    def category(self) -> str:
        """The category of those of its tools that state none."""
        return ""

    @property
    def toolkits(self) -> Sequence[CodeToolkit]:
        """Bundles of tools, its own or others', with policy and directives in code."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """What a toolkit's policy may depend on: those of its members that are active, in the members' order."""

    active_tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectiveContext:
    """What a toolkit's directive may depend on: its active members in order, and what the user says."""

    active_tools: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What the first step should be about: tools (of active ones only those count), and whether one must be called.

    ``because`` says in a few words what in the message asked for it; operators read it.
    """

    active_tools: tuple[str, ...]
    tool_choice: catalog.ToolChoice = "auto"
    because: str = ""


class CodeToolkit:
    """A toolkit that code owns: operators flip its switch, and cannot edit its members and policy.

    ``members`` are full tool keys; ``options`` gives some of them settings, which arrive in ``runtime.call.options``.
    """

    key: str
    title: str = ""
    description: str = ""
    members: Sequence[str] = ()
    options: Mapping[str, Mapping[str, Any]] = {}
    policy_when_off: str = ""
    examples: str = ""

    def policy(self, context: PolicyContext) -> str | None:
        """Say what the model must be told while a member is active. The same context gives the same text, at once."""
        return None

    def directive(self, context: DirectiveContext) -> Focus | None:
        """Say what this message should focus on, if anything. The same context gives the same answer, at once."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The call under way. ``session`` and ``request_id`` are empty where the caller named none.

    ``options`` are those of the tool for this agent, None without any. ``active_tools`` are this agent's, by plugin.
    """

    agent: str
    session: str = ""
    request_id: str = ""
    options: Mapping[str, Any] | None = None
    active_tools: Mapping[str, Sequence[str]] = field(default_factory=dict)


# Set by the registry around each call, in the call's own context; what implements RuntimeAPI reads it for ``call``.
UNDER_WAY: contextvars.ContextVar[CallContext | None] = contextvars.ContextVar("toolbelt_call", default=None)


class Secrets(Protocol):
    async def retrieve(self, namespace: str, key: str) -> str:
        """Give a secret of the plugin's own namespace, else the value of that key in its config.

        Raises :class:`SecretMissing`, and :class:`NamespaceRefused` for another plugin's namespace.
        """
        ...


class State(Protocol):
    """JSON values that outlive the process, by key. Each plugin has its own; agents share it, so name them in keys."""

    async def get(self, key: str, default: Any = None) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def delete(self, key: str) -> bool:
        """Forget the key; say whether there was one."""
        ...

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        """Give the pairs whose key begins with ``prefix``, in key order."""
        ...


class Http(Protocol):
    """An ``httpx.AsyncClient`` with time limits. It refuses private and metadata addresses unless they are allowed."""

    async def get(
        self, url: str, *, params: Any = ..., headers: Any = ..., follow_redirects: bool = ...
    ) -> httpx.Response: ...

    async def post(
        self, url: str, *, json: Any = ..., content: Any = ..., data: Any = ..., headers: Any = ...
    ) -> httpx.Response: ...

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = ...,
        content: Any = ...,
        data: Any = ...,
        params: Any = ...,
        headers: Any = ...,
        follow_redirects: bool = ...,
    ) -> httpx.Response: ...

    def stream(
        self,
        method: str,
        url: str,
        *,
        json: Any = ...,
        content: Any = ...,
        params: Any = ...,
        headers: Any = ...,
        follow_redirects: bool = ...,
    ) -> contextlib.AbstractAsyncContextManager[httpx.Response]: ...


class Log(Protocol):
    """Events with facts beside them: ``runtime.log.info("indexed", pages=3)``."""

    def debug(self, event: str, /, **facts: Any) -> Any: ...
    def info(self, event: str, /, **facts: Any) -> Any: ...
    def warning(self, event: str, /, **facts: Any) -> Any: ...
    def error(self, event: str, /, **facts: Any) -> Any: ...


class RuntimeAPI(Protocol):
    """What a plugin is given. A plugin without a namespace has its secrets and state under its name."""

    @property
    def secrets(self) -> Secrets: ...

    @property
    def state(self) -> State: ...

    @property
    def http(self) -> Http: ...

    @property
    def log(self) -> Log: ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The plugin's ``config`` as the plugins' file has it, variables filled in."""
        ...

    @property
    def call(self) -> CallContext | None:
        """The call under way; None outside of one."""
        ...


class ToolError(errors.ToolbeltError):
    """The tool could not do it, and the model may read why: the call is answered ``tool-failed`` with this message."""

    code = "tool-failed"


class SecretMissing(errors.ToolbeltError):
    """The operator's to put right: nothing holds the secret."""

    code = "secret-missing"

    def __init__(self, namespace: str, key: str, way_out: str = "") -> None:
        self.namespace, self.key = namespace, key
        hint = way_out or f"Give it to the plugin's config as {key!r}."
        super().__init__(f"There is no secret {key!r} for {namespace!r}. {hint}")


class NamespaceRefused(errors.ToolbeltError):
    """The plugin's author's to put right: it asked for another plugin's secret."""

    code = "namespace-refused"

    def __init__(self, own: str, asked: str) -> None:
        self.own, self.asked = own, asked
        super().__init__(f"The plugin of {own!r} asked for a secret of {asked!r}: it may read its own alone.")
