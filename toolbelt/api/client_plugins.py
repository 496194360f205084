"""The tools that agents' own programs declare, plugin by plugin."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, names, preconditions, problems, schemas
from toolbelt.control.servers import client_plugins
from toolbelt.plugins.upstream import limits

router = ninja.Router(tags=["plugins: agents' own programs"])

_JsonObject = dict[str, Any]


class DeclaredTool(schemas.Body):
    """A tool that the agent's own program runs."""

    name: Annotated[
        names.Name,
        pydantic.Field(description="Its name. In a plugin with a namespace, its key is `namespace__name`."),
    ]
    title: Annotated[str, pydantic.Field(description="A name for people to read.")] = ""
    description: Annotated[str, pydantic.Field(description="What the model reads.")] = ""
    input_schema: Annotated[
        _JsonObject | None, pydantic.Field(description="The JSON Schema of its arguments. Default: none.")
    ] = None
    output_schema: Annotated[
        _JsonObject | None, pydantic.Field(description="The JSON Schema of its result.")
    ] = None
    annotations: Annotated[
        _JsonObject | None, pydantic.Field(description="Hints such as `readOnlyHint`, as in MCP.")
    ] = None


class Declaration(schemas.Body):
    """Tools of a plugin that the agent's own program runs."""

    tools: Annotated[list[DeclaredTool], pydantic.Field(max_length=limits.Limits().tools)]
    complete: Annotated[
        bool,
        pydantic.Field(
            description="Whether these are all tools of the plugin. If so, its other tools are retired."
        ),
    ] = False
    reason: names.Reason = ""


class DeclaredTools(ninja.Schema):
    """The tools that are declared now, by name, and when they were last declared."""

    plugin: str
    last_declared: dt.datetime | None
    tools: list[_JsonObject]


class DeclarationResult(ninja.Schema):
    """The keys and versions of the declared tools, what waits for an operator, and what the declaration changed.

    If it changed nothing, the lists from `created` on are empty.
    """

    keys: Annotated[
        dict[str, str],
        pydantic.Field(
            description="The key of each tool, by the name in the declaration: models call it by its key."
        ),
    ]
    versions: Annotated[
        dict[str, str],
        pydantic.Field(
            description="The version of each tool, by the name in the declaration. Name it when you have a call"
            " admitted."
        ),
    ]
    waiting: Annotated[
        list[str], pydantic.Field(description="The tools that no agent has in this version before a review.")
    ]
    withdrawn: Annotated[
        list[str], pydantic.Field(description="The tools that an operator rejected or blocked.")
    ]
    show: Annotated[
        str, pydantic.Field(description="The command that shows why tools wait or are withdrawn, if any are.")
    ]
    created: list[str]
    changed: list[str]
    held: Annotated[
        list[str], pydantic.Field(description="Changed tools that are unavailable until they are approved.")
    ]
    unseen: Annotated[
        list[str], pydantic.Field(description="New tools that are off until they are reviewed.")
    ]
    retired: Annotated[
        list[str], pydantic.Field(description="Tools that a complete declaration does not have.")
    ]


@router.get("/client-plugins/{plugin}/tools", auth=auth.declaring(), response={200: DeclaredTools, 304: None})
def read_declared_tools(request: HttpRequest, plugin: names.Name, response: HttpResponse) -> Any:
    """Retrieve the tools that are declared for a plugin whose tools the agent's own program runs.

    The ETag is that of the list of tools.
    """
    tools = client_plugins.declared(plugin, auth.bearer(request).agent)
    answer = preconditions.conditional_response(request, response, tools)
    if isinstance(answer, HttpResponse):
        return answer
    return {"plugin": plugin, "last_declared": client_plugins.last_declared(plugin), "tools": tools}


@router.put(
    "/client-plugins/{plugin}/tools",
    auth=auth.declaring("change"),
    response={200: DeclarationResult, **problems.documented(409, 412)},
)
def declare_tools(request: HttpRequest, plugin: names.Name, body: Declaration, response: HttpResponse) -> Any:
    """Declare the tools of a plugin that the agent's own program runs.

    A declaration grants nothing. New and changed tools await review, unless the plugin is trusted. While a changed tool
    does, agents keep the version that was approved, until 24 hours after a program declared that last. Other tools of
    the plugin stay, unless the declaration is `complete`: then they are retired. The same declaration again changes
    nothing.
    """
    agent = auth.bearer(request).agent
    tools = [tool.model_dump(exclude_none=True) for tool in body.tools]
    with preconditions.checked(request, client_plugins.declared(plugin, agent)) as current:
        declaration = client_plugins.declare(
            auth.write(request, reason=body.reason),
            plugin,
            tools,
            agent=agent,
            was=current,
            complete=body.complete,
        )
    response["ETag"] = preconditions.tag(client_plugins.declared(plugin, agent))
    return client_plugins.document(declaration, plugin, tools)
