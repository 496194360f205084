"""The plugin API: the classes that a plugin implements, and the interfaces that it receives.

A plugin provides tools under its namespace, and runs them. Each of its functions may be ``async`` or plain. Async
functions share one event loop for the plugin's whole lifetime, and must not block it. Plain functions each run in a
thread of their own; there, :func:`toolbelt.wait` returns the results of the async functions of ``runtime``. A plugin
accesses everything outside itself through ``runtime``, so that it runs in a test as it does on a server. It only needs
to import::

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
    """A function that a model can call. ``name`` is its full key, ``<namespace>__<name>``.

    ``category`` defaults to the plugin's. With ``default_on``, the tool is active for agents that have no loadout.
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
    """A provider of tools. Its properties may also be class attributes: ``name = "kb"``."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The plugin's name: letters, digits, ``_``, ``.`` and ``-``."""

    @property
    @abc.abstractmethod
    def namespace(self) -> str:
        """The prefix of its tools' names, before ``__``. If empty, the names have no prefix and contain no ``__``."""

    @property
    @abc.abstractmethod
    def tools(self) -> Sequence[ToolDefinition]:
        """The tools. They must be the same before and after :meth:`initialize`."""

    @abc.abstractmethod
    def execute(self, tool_name: str, args: dict[str, Any]) -> Awaitable[Any] | Any:
        """Run a tool with arguments that match its schema. Return a value that JSON can represent, ideally a mapping.

        Raise :class:`ToolError` with a message for the model. Other exceptions are logged and not shown to the model.
        """

    def initialize(self, runtime: RuntimeAPI) -> Awaitable[None] | None:
        """Prepare the plugin. Called once, before the first :meth:`execute`. If it raises, the plugin has failed."""
        return None

    def shutdown(self) -> Awaitable[None] | None:
        """Release what :meth:`initialize` acquired. Called once, if :meth:`initialize` succeeded."""
        return None

    @property
    def title(self) -> str:
        """The display name for operators, shown instead of the name."""
        return ""

    @property
    def description(self) -> str:
        """A sentence for operators."""
        return ""

    @property
    def category(self) -> str:
        """The default category of its tools."""
        return ""

    @property
    def toolkits(self) -> Sequence[CodeToolkit]:
        """Toolkits defined in code, of its own tools or of other plugins' tools."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """The input of :meth:`CodeToolkit.policy`: the toolkit's active members, in their order."""

    active_tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectiveContext:
    """The input of :meth:`CodeToolkit.directive`: the toolkit's active members, in order, and the user's message."""

    active_tools: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """The focus of a request's first step: the tools to offer, and whether the model must call one of them.

    Tools that are not active are ignored. ``because`` names the words in the message that triggered the focus, for
    operators.
    """

    active_tools: tuple[str, ...]
    tool_choice: catalog.ToolChoice = "auto"
    because: str = ""


class CodeToolkit:
    """A toolkit defined in code. Operators can flip its switch, but cannot edit its members and policy.

    ``members`` are full tool keys. ``options`` are settings for members, available as ``runtime.call.options``.
    """

    key: str
    title: str = ""
    description: str = ""
    members: Sequence[str] = ()
    options: Mapping[str, Mapping[str, Any]] = {}
    policy_when_off: str = ""
    examples: str = ""

    def policy(self, context: PolicyContext) -> str | None:
        """Return the policy text for the model, or None. Called while a member is active; must be deterministic."""
        return None

    def directive(self, context: DirectiveContext) -> Focus | None:
        """Return the focus for the user's message, or None. Must be deterministic and must not block."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The current call. ``session`` and ``request_id`` are empty if the client did not send them.

    ``options`` are the tool's options for this agent, or None. ``active_tools`` are the agent's active tools, by
    plugin.
    """

    agent: str
    session: str = ""
    request_id: str = ""
    options: Mapping[str, Any] | None = None
    active_tools: Mapping[str, Sequence[str]] = field(default_factory=dict)


# The registry sets it during each call, in the call's own context; implementations of RuntimeAPI read it for ``call``.
CURRENT_CALL: contextvars.ContextVar[CallContext | None] = contextvars.ContextVar(
    "toolbelt_call", default=None
)


class Secrets(Protocol):
    async def retrieve(self, namespace: str, key: str) -> str:
        """Return a secret of the plugin's own namespace, or else the value of that key in the plugin's config.

        Raise :class:`SecretMissing` if there is none, and :class:`NamespaceRefused` for another plugin's namespace.
        """
        ...


class State(Protocol):
    """Persistent JSON values by key. Each plugin has its own. All agents share it: include the agent in the key."""

    async def get(self, key: str, default: Any = None) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def delete(self, key: str) -> bool:
        """Delete the key. Return whether it existed."""
        ...

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        """Return the values whose key begins with ``prefix``, by key, in order."""
        ...


class Http(Protocol):
    """An ``httpx.AsyncClient`` with timeouts. It refuses private and metadata addresses unless settings allow them."""

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
    """Structured logging: an event and its fields, such as ``runtime.log.info("indexed", pages=3)``."""

    def debug(self, event: str, /, **facts: Any) -> Any: ...
    def info(self, event: str, /, **facts: Any) -> Any: ...
    def warning(self, event: str, /, **facts: Any) -> Any: ...
    def error(self, event: str, /, **facts: Any) -> Any: ...


class Wallet(Protocol):
    """The type of ``runtime.wallet``, which an installation may provide (the setting WALLET). Toolbelt has none."""

    async def get_address(self) -> str: ...

    async def get_balance(self) -> Any: ...

    async def sign_message(self, message: str) -> str: ...


class RuntimeAPI(Protocol):
    """The interfaces that a plugin receives. Without a namespace, its secrets and state are stored under its name."""

    @property
    def secrets(self) -> Secrets: ...

    @property
    def state(self) -> State: ...

    @property
    def http(self) -> Http: ...

    @property
    def log(self) -> Log: ...

    @property
    def wallet(self) -> Wallet:
        """The installation's wallet. Raise :class:`WalletMissing` if it has none."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The plugin's ``config`` from the plugins file, with variables substituted."""
        ...

    @property
    def call(self) -> CallContext | None:
        """The current call, or None outside of a call."""
        ...


class ToolError(errors.ToolbeltError):
    """The tool failed with a message that the model may read: the call returns ``tool-failed`` with this message."""

    code = "tool-failed"


class SecretMissing(errors.ToolbeltError):
    """A secret is not configured. An operator can fix this."""

    code = "secret-missing"

    def __init__(self, namespace: str, key: str, way_out: str = "") -> None:
        self.namespace, self.key = namespace, key
        hint = way_out or f"Add {key!r} to the plugin's config."
        super().__init__(f"There is no secret {key!r} for {namespace!r}. {hint}")


class WalletMissing(errors.ToolbeltError):
    """A plugin asked for the wallet, and the installation has none. An operator can fix this."""

    code = "wallet-missing"

    def __init__(self) -> None:
        super().__init__(
            "This installation has no wallet: set TOOLBELT_WALLET to module:attribute, which is called with the"
            " plugin's namespace and returns one."
        )


class NamespaceRefused(errors.ToolbeltError):
    """A plugin requested another plugin's secret. The plugin's author can fix this."""

    code = "namespace-refused"

    def __init__(self, namespace: str, requested: str) -> None:
        self.own, self.requested = namespace, requested
        super().__init__(
            f"The plugin of {namespace!r} requested a secret of {requested!r}, but may only read its own secrets."
        )
