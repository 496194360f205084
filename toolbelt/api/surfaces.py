"""What does a surface look like to whoever reads it from the wire? Its shape, for the OpenAPI document.

Surfaces are sent as the bytes of their one canonical form (see toolbelt.runtime.documents), and never take the way
through these classes; a test holds the two against each other.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ninja
import pydantic

from toolbelt.core import agents, sessions
from toolbelt.runtime import rendering

# The rule of core.sessions.id_problem, which says what is wrong with one.
Id = Annotated[
    str,
    pydantic.WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": sessions.LONGEST_ID,
            "pattern": r"^([^\p{C}\p{Z}]| )+$",
        }
    ),
]
Session = Annotated[
    Id | None,
    pydantic.Field(description="The conversation. Without one, nothing is loaded on demand."),
]
Request = Annotated[
    Id | None,
    pydantic.Field(description="The request in it: one model request, or one run."),
]
Subagent = Annotated[
    Literal[agents.KINDS] | None,  # type: ignore[valid-type]
    pydantic.Field(
        description="A kind of agent to ask on behalf of; an agent's token: of its subagent_kinds."
    ),
]
Format = Annotated[
    Literal[rendering.FORMATS] | None,  # type: ignore[valid-type]
    pydantic.Field(description="Fill `provider` for this provider's SDK."),
]


class Tool(ninja.Schema):
    """A tool as the model gets it."""

    name: str
    title: str | None = None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any]
    toolkits: list[str]
    tokens: int


class Directive(ninja.Schema):
    """What the first step of the request is to focus on."""

    active_tools: list[str]
    tool_choice: str
    first_step_only: bool


class Discoverable(ninja.Schema):
    """What could be had on request: how many tools, and at most 50 names of toolkits and of plugins."""

    count: int
    toolkits: list[str]
    plugins: list[str]


class Section(ninja.Schema):
    """One section of the policy: of a toolkit, or of a tool in none."""

    toolkit: str | None = None
    tool: str | None = None
    state: str
    text: str


class Policy(ninja.Schema):
    """What the model is told, for the end of the system prompt."""

    text: str
    sections: list[Section]


class Delta(ninja.Schema):
    """What is new against the tools that the model was given: names."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class Budget(ninja.Schema):
    """What the active tools come to, and the most that they may."""

    tools: int
    tokens: int
    tokenizer: str
    max_tools: int | None
    max_tokens: int | None


class Warned(ninja.Schema):
    """Something that an operator should know of."""

    code: str
    message: str


class Surface(ninja.Schema):
    """Everything that the model gets for one request. `delta` is null unless `declared` was sent."""

    agent: str
    session: str | None
    request_id: str | None
    revision: int
    fingerprint: str
    active_tools: list[str]
    tool_choice: str
    directive: Directive | None
    tools: list[Tool]
    discoverable: Discoverable
    policy: Policy
    declared: dict[str, str]
    delta: Delta | None
    budget: Budget
    warnings: list[Warned]
    provider: dict[str, Any]
    stale: Annotated[
        bool,
        pydantic.Field(description="The last known surface: the database cannot be read. Else left out."),
    ] = False
