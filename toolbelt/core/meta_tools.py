"""Which tools does Toolbelt itself give an agent, to load and find others? (seed: Dynamic Toolkits)

Their descriptions speak to a model: they say when to call, and that a load counts from the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import definitions, schema

LIST, LOAD, UNLOAD, SEARCH = "list_toolkits", "load_tools", "unload_tools", "search_tools"
SEARCH_LIMIT = 10
MOST_HITS = 50


def _define(
    name: str, description: str, properties: Mapping[str, Any], required: list[str], read_only: bool
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
        annotations={"readOnlyHint": read_only, "destructiveHint": False, "openWorldHint": False},
    )


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
            "Load one toolkit by name, or one plugin or tool that search_tools named. Its tools are there from the "
            "next request on, not in this one: tell the user so and stop.",
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
            "Unload something you loaded and no longer need. It counts from the next request on; toolkits that are "
            "always loaded stay.",
            {"toolkit": {"type": "string", "description": "The name that was loaded."}},
            ["toolkit"],
            False,
        ),
        _define(
            SEARCH,
            "Search the tools that you could load, by what they do. Search once for each step of a plan rather than "
            "once for the whole task. Each result says which name to give to load_tools.",
            {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What the tool should do, in a few words.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_HITS,
                    "description": f"How many results at the most; {SEARCH_LIMIT} if not given.",
                },
            },
            ["query"],
            True,
        ),
    )
}
SCHEMAS: Mapping[str, str] = {name: schema.canonical(d.input_schema) for name, d in DEFINITIONS.items()}
