"""What is used, and what it costs: by agent and by tool."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, paging
from toolbelt.control.reports import tokens_used

router = ninja.Router(tags=["calls"])


class UsageQuery(paging.PageQuery):
    """The period and the agent of a list of usage."""

    agent: Annotated[names.Text, pydantic.Field(description="Of this agent only.")] = ""
    days: Annotated[
        int,
        pydantic.Field(
            ge=1,
            le=tokens_used.MAX_DAYS,
            description=f"In the last days: 1 to {tokens_used.MAX_DAYS}, by default 30.",
        ),
    ] = 30


class ToolUsageQuery(UsageQuery):
    """The filters of the usage of tools."""

    unused: Annotated[
        names.BooleanInAddress,
        pydantic.Field(
            description="Only tools that an agent has and did not call, by the tokens of these agents."
        ),
    ] = False


class AgentUsage(ninja.Schema):
    """The use of one agent."""

    agent: str
    tools: Annotated[int, pydantic.Field(description="How many tools it has now, outside a session.")]
    tokens: Annotated[int, pydantic.Field(description="Their tokens, with each request.")]
    unused: Annotated[int, pydantic.Field(description="How many of them it did not call.")]
    calls: int
    answers: Annotated[int, pydantic.Field(description="How many answers listed tools to it.")]
    sent: Annotated[int, pydantic.Field(description="The tokens that it was sent in them.")]
    allowed: Annotated[
        int, pydantic.Field(description="The tokens of the same answers with every tool that it may load.")
    ]


class ToolUsage(ninja.Schema):
    """The use of a tool that agents have."""

    tool: str
    plugin: str
    tokens: Annotated[int, pydantic.Field(description="Its tokens, with each request of each agent.")]
    agents: Annotated[list[str], pydantic.Field(description="The agents that have it.")]
    unused_by: Annotated[list[str], pydantic.Field(description="Those of them that did not call it.")]
    calls: Annotated[int, pydantic.Field(description="The calls by the agents that have it.")]


@router.get("/usage/agents", auth=auth.viewing("call_record", "agent"), response=paging.list_of(AgentUsage))
def list_usage_of_agents(request: HttpRequest, query: ninja.Query[UsageQuery]) -> Any:
    """List the tokens and calls of agents, the most tokens sent first."""
    report = tokens_used.report(days=query.days, agent=query.agent)
    return paging.slice_page(request, query, [dataclasses.asdict(used) for used in report.agents])


@router.get("/usage/tools", auth=auth.viewing("call_record", "tool"), response=paging.list_of(ToolUsage))
def list_usage_of_tools(request: HttpRequest, query: ninja.Query[ToolUsageQuery]) -> Any:
    """List the tools that agents have, with their tokens and calls, or those that are not used, the most expensive
    first.
    """
    report = tokens_used.report(days=query.days, agent=query.agent)
    tools = report.unused if query.unused else report.tools
    return paging.slice_page(request, query, [dataclasses.asdict(used) for used in tools])
