"""Tools from typed functions, derived from their name, type hints and docstring::

    @tool(category="search", annotations={"readOnlyHint": True})
    async def search(query: str, runtime: RuntimeAPI, limit: int = 10) -> list[str]:
        '''Search the knowledge base.

        Args:
            query: What to look for, in a few words.
        '''

    plugin = FunctionPlugin(name="knowledge", namespace="kb", functions=[search])

The tool is ``kb__search``, with the arguments ``query`` and ``limit``. Plain functions run in a thread.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from toolbelt.core import keys
from toolbelt.plugins import background, contract, docstrings, signatures

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__toolbelt_tool__"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The arguments of the decorator. Empty ones are derived from the function."""

    name: str = ""
    title: str = ""
    description: str = ""
    category: str = ""
    default_on: bool = False
    annotations: Mapping[str, Any] = field(default_factory=dict)


@overload
def tool(function: F) -> F: ...


@overload
def tool(
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    category: str = "",
    default_on: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    category: str = "",
    default_on: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> F | Callable[[F], F]:
    """Mark a function as a tool, and set further properties of the tool. The function itself is not changed."""
    options = _Options(
        name=name,
        title=title,
        description=description,
        category=category,
        default_on=default_on,
        annotations=dict(annotations or {}),
    )

    def mark(function: F) -> F:
        setattr(function, _MARK, options)
        return function

    return mark if function is None else mark(function)


class FunctionPlugin(contract.ToolPlugin):
    """A plugin of typed functions, decorated or not. Raise TypeError if a function has no schema."""

    name, namespace, title, description, category = "", "", "", "", ""
    tools: Sequence[contract.ToolDefinition] = ()
    toolkits: Sequence[contract.CodeToolkit] = ()

    def __init__(
        self,
        *,
        name: str,
        namespace: str,
        functions: Sequence[Callable[..., Any]],
        title: str = "",
        description: str = "",
        category: str = "",
        toolkits: Sequence[contract.CodeToolkit] = (),
    ) -> None:
        self.name, self.namespace = name, namespace
        self.title, self.description, self.category = title, description, category
        self.toolkits = tuple(toolkits)
        tools = [_Tool(function, namespace) for function in functions]
        self.tools = tuple(tool.definition for tool in tools)
        self._tools = {tool.definition.name: tool for tool in tools}
        self._threads = background.Threads()
        self._runtime: contract.RuntimeAPI | None = None

    def initialize(self, runtime: contract.RuntimeAPI) -> Awaitable[None] | None:
        """Store the runtime for functions that take it. Subclasses that override this must call it too."""
        self._runtime = runtime
        return None

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        """Call the function with the arguments, converted to the types of its hints."""
        if tool_name not in self._tools:
            raise ValueError(f"Unknown tool: {tool_name}")
        return await self._tools[tool_name].call(args, self._runtime, self._threads)


class _Tool:
    """A function as a tool."""

    def __init__(self, function: Callable[..., Any], namespace: str) -> None:
        options: _Options = getattr(function, _MARK, _Options())
        docstring = docstrings.parse(function.__doc__)
        name = options.name or function.__name__
        if namespace and not keys.in_namespace(name, namespace):
            name = f"{namespace}{keys.SEPARATOR}{name}"
        self._function = function
        self._signature = signatures.read(function, docstring.parameters)
        self.definition = contract.ToolDefinition(
            name=name,
            title=options.title,
            description=options.description or docstring.description,
            input_schema=self._signature.input_schema,
            output_schema=self._signature.output_schema,
            annotations=options.annotations,
            category=options.category,
            default_on=options.default_on,
        )

    async def call(
        self, args: Mapping[str, Any], runtime: contract.RuntimeAPI | None, threads: background.Threads
    ) -> Any:
        arguments = self._signature.arguments(args)
        if self._signature.runtime and runtime is None:
            raise RuntimeError(f"{self.definition.name} needs the runtime: initialize the plugin first.")
        arguments |= dict.fromkeys(self._signature.runtime, runtime)
        result = await background.call(threads, functools.partial(self._function, **arguments))
        return self._signature.to_json(result)
