"""The OpenAPI schema of surfaces.

Surfaces are sent in their canonical form (see toolbelt.runtime.surfaces.documents) without passing through these
classes; a test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ninja
import pydantic

from toolbelt.core import agents, request_key, sessions
from toolbelt.runtime.surfaces import appending, conversation_tokens, rendering

# The same rule as core.sessions.id_problem, which explains what is wrong with an id.
Id = Annotated[
    str,
    pydantic.WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": sessions.MAX_ID_LENGTH,
            "pattern": r"^([^\p{C}\p{Z}]| )+$",
        }
    ),
]
Session = Annotated[
    Id | None,
    pydantic.Field(description="The id of the conversation. Without it, tools cannot be loaded on request."),
]
Request = Annotated[
    Id | None,
    pydantic.Field(description="The id of the request within the session: a model request or a run."),
]
Subagent = Annotated[
    agents.Kind | None,
    pydantic.Field(
        description="The kind of subagent that the request is for."
        " With an agent's own token, one of the agent's `subagent_kinds`."
    ),
]
Format = Annotated[
    Literal[rendering.FORMATS] | None,  # type: ignore[valid-type]
    pydantic.Field(description="Fill `provider` in for this provider's SDK."),
]
Model = Annotated[
    str | None,
    pydantic.Field(
        max_length=agents.MAX_MODEL_LENGTH,
        description="The name of the model that receives the surface, for what `first_step` contains."
        " Default: the agent's `model`.",
    ),
]


class OfConversation(ninja.Schema):
    """The conversation that a request is made in."""

    model_config = pydantic.ConfigDict(extra="forbid")

    token: Annotated[
        str | None,
        pydantic.Field(
            max_length=conversation_tokens.MAX_LENGTH,
            description="The token of the last request that the model answered. Null for a new conversation.",
        ),
    ] = None


class Conversation(OfConversation):
    """The conversation that a surface is for."""

    platform: Annotated[
        appending.Platform, pydantic.Field(description="Where one of Anthropic's models runs.")
    ] = "api"
    compacted: Annotated[
        bool, pydantic.Field(description="Whether the provider compacted the conversation since then.")
    ] = False
    hold: Annotated[
        bool,
        pydantic.Field(
            description="Whether the model's turn is only paused, so that nothing can be appended."
        ),
    ] = False

    def value(self) -> appending.Conversation:
        """Return the conversation."""
        return appending.Conversation(self.token, self.platform, self.compacted, self.hold)


class Restart(ninja.Schema):
    """Why a conversation must begin again with a new prefix."""

    code: str
    message: str


class ToldChanges(ninja.Schema):
    """What the messages tell the model: names of tools, sections of the policy, and toolkits that it may load."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    policy: list[str]
    loadable: list[str]
    left_out: Annotated[
        dict[str, str],
        pydantic.Field(description="Tools that the provider does not accept, with the reason."),
    ]


class Held(ninja.Schema):
    """Tools whose definitions the model still has, although it can no longer call them."""

    tools: int
    tokens: int


class Append(ninja.Schema):
    """What to append to a conversation. Keep `messages` and `token` once the model has answered."""

    line: Annotated[
        str,
        pydantic.Field(description="The models that can continue the conversation; any other needs its own."),
    ]
    token: str
    prefix: Annotated[
        dict[str, Any] | None,
        pydantic.Field(description="What every request begins with. Null if the conversation has one."),
    ]
    messages: Annotated[
        list[dict[str, Any]], pydantic.Field(description="Append them after the latest turn of the user.")
    ]
    request: Annotated[dict[str, Any], pydantic.Field(description="Parameters of this request only.")]
    headers: Annotated[dict[str, str], pydantic.Field(description="HTTP headers of every request.")]
    changes: ToldChanges
    tokens: Annotated[
        int,
        pydantic.Field(description="About how many tokens the prefix has, or the changes in `messages`."),
    ]
    restart: Restart | None
    held: Held


class OfRequest(pydantic.BaseModel):
    """The fields of a body or a query that say what it is for."""

    session: Session = None
    request_id: Request = None
    subagent: Subagent = None

    def key(self, agent: str) -> request_key.RequestKey:
        """Return the key of the request."""
        return request_key.RequestKey(agent, self.session, self.request_id, self.subagent)


class Tool(ninja.Schema):
    """A tool, as the model receives it."""

    name: str
    title: str | None = None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any]
    icons: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = None
    toolkits: list[str]
    tokens: int


class Directive(ninja.Schema):
    """A focus for the request, from a toolkit's trigger that matched the message."""

    active_tools: Annotated[list[str], pydantic.Field(description="The tools to offer to the model.")]
    tool_choice: str
    first_step_only: Annotated[
        bool, pydantic.Field(description="Whether it applies only to the first step of the request.")
    ]


class Discoverable(ninja.Schema):
    """The tools that the agent can load: their number, and at most 50 names of toolkits and of plugins."""

    count: int
    toolkits: list[str]
    plugins: list[str]


class Section(ninja.Schema):
    """A section of the policy, for a toolkit or for a tool without a toolkit."""

    toolkit: str | None = None
    tool: str | None = None
    state: str
    text: str


class Policy(ninja.Schema):
    """Instructions on the tools for the model."""

    text: Annotated[str, pydantic.Field(description="Append it to the system prompt.")]
    sections: list[Section]


class Delta(ninja.Schema):
    """The names of the tools that differ from `declared` in the request."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class Budget(ninja.Schema):
    """The number of active tools, their tokens with those of the policy, and the agent's limits."""

    tools: int
    tokens: int
    policy_tokens: int
    tokenizer: str
    max_tools: int | None
    max_tokens: int | None


class SurfaceWarning(ninja.Schema):
    """A problem with the configuration that an operator should know about."""

    code: str
    message: str


class Surface(ninja.Schema):
    """Everything that the model receives for one request."""

    agent: str
    session: str | None
    request_id: str | None
    model: Annotated[str, pydantic.Field(description="The model's name, as it is stored for the agent.")]
    revision: Annotated[int, pydantic.Field(description="The revision of the configuration.")]
    fingerprint: Annotated[str, pydantic.Field(description="A digest of everything that the model sees.")]
    active_tools: Annotated[list[str], pydantic.Field(description="The names of the active tools.")]
    tool_choice: str
    directive: Directive | None
    tools: list[Tool]
    discoverable: Discoverable
    policy: Policy
    declared: Annotated[
        dict[str, str],
        pydantic.Field(
            description="The tools, by name, with a hash. Send it with a later request to get a `delta`."
        ),
    ]
    delta: Annotated[Delta | None, pydantic.Field(description="Null unless the request has `declared`.")]
    budget: Budget
    warnings: list[SurfaceWarning]
    provider: Annotated[
        dict[str, Any],
        pydantic.Field(description="Arguments for the provider's SDK, if the request has a `format`."),
    ]
    append: Annotated[
        Append | None,
        pydantic.Field(
            description="Instead of `provider`, if the request has a `conversation`. Else omitted."
        ),
    ] = None
    stale: Annotated[
        bool,
        pydantic.Field(
            description="True if the database cannot be read, and this is the last known surface. Otherwise omitted."
        ),
    ] = False
