"""Reading and writing an agent's tools_config: its switches and overrides as one flat ``{key: true | false}``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, change_results, names, preconditions, problems
from toolbelt.control import writing
from toolbelt.control.access import tools_config

router = ninja.Router(tags=["access"])

_CHANGED = {200: change_results.ChangeResult, **problems.documented(409, 412)}


class ToolsConfig(pydantic.RootModel[dict[str, names.Boolean]]):
    """An agent's switches and overrides, by the keys of toolkits and tools."""


class ScheduledEnd(pydantic.BaseModel):
    """When a switch or an override expires."""

    at: str = pydantic.Field(json_schema_extra={"format": "date-time"}, description="In UTC, to the second.")
    then: bool | None = pydantic.Field(description="The value that it then returns to. Null: the default.")
    by: str = pydantic.Field(description="The user who set it.")


class ScheduledEnds(pydantic.RootModel[dict[str, ScheduledEnd]]):
    """The switches and overrides that expire, by the keys of toolkits and tools."""


class ToolsConfigUpdate(pydantic.RootModel[dict[str, Any]]):
    """New switches and overrides, by the keys of toolkits and tools. Null resets a key to the default."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={"additionalProperties": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
    )


@router.get("/agents/{agent}/tools-config", auth=auth.reading(), response={200: ToolsConfig, 304: None})
def read_tools_config(request: HttpRequest, agent: names.Name, response: HttpResponse) -> Any:
    """Retrieve all switches and overrides that are set for an agent."""
    return preconditions.conditional_response(request, response, tools_config.read(agent))


@router.get(
    "/agents/{agent}/tools-config/ends", auth=auth.reading(), response={200: ScheduledEnds, 304: None}
)
def read_ends(request: HttpRequest, agent: names.Name, response: HttpResponse) -> Any:
    """Retrieve when the switches and overrides of an agent expire. Those that are not listed are permanent.

    To set an expiry, send `ends` when you set the switch or the override.
    """
    return preconditions.conditional_response(request, response, tools_config.ends(agent))


@router.put("/agents/{agent}/tools-config", auth=auth.switch_writing, response=_CHANGED)
def put_tools_config(
    request: HttpRequest,
    agent: names.Name,
    body: ToolsConfigUpdate,
    query: ninja.Query[names.DryRunQuery],
    response: HttpResponse,
) -> Any:
    """Replace all switches and overrides of an agent: all of them are set, or none.

    The body maps the keys of toolkits and tools to true (on), false (off) or null (default). Keys that it omits are
    reset to the default.
    """
    with preconditions.checked(request, tools_config.read(agent)) as expected:

        def act(write: writing.Write) -> writing.Change:
            return tools_config.put(write, agent, body.root, was=expected)

        return _response(request, agent, query, response, act)


@router.patch("/agents/{agent}/tools-config", auth=auth.switch_writing, response=_CHANGED)
def change_tools_config(
    request: HttpRequest,
    agent: names.Name,
    body: ToolsConfigUpdate,
    query: ninja.Query[names.DryRunQuery],
    response: HttpResponse,
) -> Any:
    """Change the switches and overrides that the body names: all of them, or none.

    The body maps the keys of toolkits and tools to true (on), false (off) or null (default).
    """
    with preconditions.checked(request, tools_config.read(agent)) as expected:

        def act(write: writing.Write) -> writing.Change:
            if expected is None:
                return tools_config.change(write, agent, body.root)
            # If-Match covers the whole configuration, so the whole configuration is compared.
            return tools_config.put(write, agent, {**expected, **body.root}, was=expected)

        return _response(request, agent, query, response, act)


def _response(
    request: HttpRequest,
    agent: str,
    query: names.DryRunQuery,
    response: HttpResponse,
    act: Callable[[writing.Write], writing.Change],
) -> dict[str, Any]:
    write = auth.write(request, reason=query.reason, confirm=query.confirm)
    change, report = change_results.make(request, write, act, query, agent=agent)
    if not query.dry_run:
        response["ETag"] = preconditions.tag(change.result)
    return report
