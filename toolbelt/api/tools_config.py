"""How is the flat tools_config of an agent read and written? As ``{key: true | false}``, switches beside overrides."""

from __future__ import annotations

from typing import Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, changed, names, preconditions, problems
from toolbelt.control import tools_config

router = ninja.Router(tags=["access"])

_CHANGED = {200: changed.Changed, **problems.answers(409, 412)}


class ToolsConfig(pydantic.RootModel[dict[str, names.Boolean]]):
    """What is set, by the keys of toolkits and tools."""


class Ending(pydantic.BaseModel):
    """When a switch or an override ends (to the second, in UTC), what stands from then on, and who gave it."""

    at: str = pydantic.Field(json_schema_extra={"format": "date-time"})
    then: bool | None = pydantic.Field(description="On, off, or null: unset.")
    by: str


class Ends(pydantic.RootModel[dict[str, Ending]]):
    """What ends, by the keys of toolkits and tools."""


class ToolsConfigWanted(pydantic.RootModel[dict[str, Any]]):
    """What is wanted, by the keys of toolkits and tools; null: unset. The door judges it, and names every problem."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={"additionalProperties": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
    )


@router.get("/agents/{agent}/tools-config", auth=auth.reading(), response={200: ToolsConfig, 304: None})
def read_tools_config(request: HttpRequest, agent: names.Name, response: HttpResponse) -> Any:
    """Give all switches and overrides that are set."""
    return preconditions.answered(request, response, tools_config.read(agent))


@router.get("/agents/{agent}/tools-config/ends", auth=auth.reading(), response={200: Ends, 304: None})
def read_ends(request: HttpRequest, agent: names.Name, response: HttpResponse) -> Any:
    """Give the ends of those switches and overrides that have one, beside what is set (``tools-config``).

    What is not named here stands for good. An end is given with the switch or the override itself.
    """
    return preconditions.answered(request, response, tools_config.ends(agent))


@router.put("/agents/{agent}/tools-config", auth=auth.flipping, response=_CHANGED)
def put_tools_config(
    request: HttpRequest,
    agent: names.Name,
    body: ToolsConfigWanted,
    asked: ninja.Query[names.FarReaching],
    response: HttpResponse,
) -> Any:
    """Let the body be all that is set: what it does not name is cleared. All of it comes about, or nothing."""
    with preconditions.held(request, tools_config.read(agent)) as was:
        done = tools_config.put(
            auth.actor(request), agent, body.root, was=was, reason=asked.reason, confirm=asked.confirm
        )
    response["ETag"] = preconditions.tag(done.whole)
    return changed.told(done)


@router.patch("/agents/{agent}/tools-config", auth=auth.flipping, response=_CHANGED)
def change_tools_config(
    request: HttpRequest,
    agent: names.Name,
    body: ToolsConfigWanted,
    asked: ninja.Query[names.FarReaching],
    response: HttpResponse,
) -> Any:
    """Set only what the body names; null clears it. All of it comes about, or nothing."""
    with preconditions.held(request, tools_config.read(agent)) as was:
        actor = auth.actor(request)
        if was is None:
            done = tools_config.change(actor, agent, body.root, reason=asked.reason, confirm=asked.confirm)
        else:
            # What they saw is the whole, so the whole is compared.
            done = tools_config.put(
                actor, agent, {**was, **body.root}, was=was, reason=asked.reason, confirm=asked.confirm
            )
    response["ETag"] = preconditions.tag(done.whole)
    return changed.told(done)
