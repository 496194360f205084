"""Meta-tools: Toolbelt's own tools, with which an agent finds and loads others (seed: Dynamic Toolkits).

Their descriptions are written for a model: they say when to call, and that a load takes effect from the next request.
Where an agent's tool list is constant (docs/how-to/connect-an-mcp-client.md), nothing is loaded, and
:data:`DISPATCHING` replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import definitions, keys, schema

LIST, LOAD, UNLOAD, SEARCH = "list_toolkits", "load_tools", "unload_tools", "search_tools"
CALL = keys.CALL
SEARCH_LIMIT = 10
MAX_HITS = 50
MAX_OFFSET = 1000


def _define(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    required: list[str],
    read_only: bool,
    *,
    does_anything: bool = False,
) -> definitions.Definition:
    input_schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
    return definitions.define(
        name=name,
        description=description,
        input_schema=input_schema,
        annotations={
            "readOnlyHint": read_only,
            "destructiveHint": does_anything,
            "openWorldHint": does_anything,
        },
    )


_SEARCH_PROPERTIES: Mapping[str, Any] = {
    "query": {
        "type": "string",
        "minLength": 1,
        "description": "What the tool should do in this step, in a few words.",
    },
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_HITS,
        "description": f"The maximum number of results (default: {SEARCH_LIMIT}).",
    },
    "offset": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_OFFSET,
        "description": "For more results: the next_offset of the previous answer.",
    },
}
DEFINITIONS: Mapping[str, definitions.Definition] = {
    definition.name: definition
    for definition in (
        _define(
            LIST,
            "List the toolkits you may load, with the tools in each and whether it is loaded. Call it when you are "
            "not sure which toolkit has a capability you need.",
            {},
            [],
            True,
        ),
        _define(
            LOAD,
            "Load one toolkit by name, or one plugin or tool that search_tools named. Its tools are available from the "
            "next request, not in this one: tell the user so and stop.",
            {
                "toolkit": {
                    "type": "string",
                    "description": "The name to load, as list_toolkits or search_tools gave it.",
                }
            },
            ["toolkit"],
            False,
        ),
        _define(
            UNLOAD,
            "Unload something you loaded and no longer need. It takes effect from the next request; toolkits that are "
            "always loaded cannot be unloaded.",
            {"toolkit": {"type": "string", "description": "The name that was loaded."}},
            ["toolkit"],
            False,
        ),
        _define(
            SEARCH,
            "Search the tools that you have or could load, by what they do. Search once for each step of a plan rather "
            "than once for the whole task. Each result says whether it is active, or which name to give to load_tools.",
            _SEARCH_PROPERTIES,
            ["query"],
            True,
        ),
    )
}
DISPATCHING: Mapping[str, definitions.Definition] = {
    definition.name: definition
    for definition in (
        _define(
            CALL,
            "Call a tool that search_tools found: give its name, and arguments that fit the input_schema in its search "
            "result. Call the tools that are listed here directly.",
            {
                "tool": {"type": "string", "description": "The tool's name, as search_tools gave it."},
                "arguments": {
                    "type": "object",
                    "description": "The tool's own arguments; none if not given.",
                },
            },
            ["tool"],
            False,
            # No client can know in advance which tool it calls.
            does_anything=True,
        ),
        _define(
            SEARCH,
            "Search the tools that you may call, by what they do, beside those that are listed here. Search once for "
            "each step of a plan rather than once for the whole task. Call results with call_tool; search for a "
            "tool's exact name to get its whole description and input_schema.",
            _SEARCH_PROPERTIES,
            ["query"],
            True,
        ),
    )
}
SCHEMAS: Mapping[str, str] = {
    name: schema.canonical(d.input_schema) for name, d in (*DEFINITIONS.items(), *DISPATCHING.items())
}
