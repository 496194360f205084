"""A large installation: many agents and tools, generated from a seed, and written by bulk inserts.

Servers have 50 to 200 tools each, toolkits 3 to 30, and agents have loadouts, switches, overrides, toolkits to load,
budgets and temporary grants, as they would after a year of use. The same seed generates the same rows.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import models as orm
from django.db import transaction
from django.utils import timezone

from toolbelt import models

CATALOGS = Path(__file__).resolve().parent.parent / "fixtures/demo/catalogs"
LOADOUTS = 40
CATEGORIES = ("filesystem", "git", "github", "shell", "web", "search", "network", "memory", "analysis")
KINDS = ("explore", "task", "plan", "review")
DAYS = 30
BATCH = 500
# The entries whose pages are requested: an agent with exceptions, an agent with everything, and one entry of each kind.
AGENT, MAX_SIZE, TOOLKIT, LOADOUT, SUB_APP = "agent-0007", "agent-0000", "kit-003", "house-05", "app-1"

_Row = TypeVar("_Row", bound=orm.Model)


def fill(*, agents: int = 1_000, tools: int = 10_000, changes: int = 5_000, calls: int = 20_000) -> None:
    """Fill an empty database with this many agents, tools, audit entries and call records."""
    dice = random.Random(1)  # noqa: S311  the rows must be the same each time
    with transaction.atomic():
        plugins = _plugins(dice, tools)
        tool_rows = _tools(dice, plugins, tools)
        toolkits = _toolkits(dice, tool_rows)
        _loadouts(dice, plugins, tool_rows)
        agent_rows = _agents(dice, agents, tool_rows, toolkits)
        _sub_apps(dice, agent_rows, tool_rows)
        _tokens(dice, agent_rows)
        _activity(dice, agent_rows, tool_rows, toolkits, changes, calls)


def tool_name(number: int) -> str:
    """Return the name of the first server's tool with this number."""
    return f"server000__tool_{number:05}"


def _insert(rows: Sequence[_Row]) -> list[_Row]:
    return list(type(rows[0])._default_manager.bulk_create(rows, batch_size=BATCH)) if rows else []


@functools.cache
def _demo_tools() -> list[dict[str, Any]]:
    """Return the tools of the demo's servers, whose descriptions and schemas have realistic sizes."""
    return [
        tool
        for file in sorted(CATALOGS.glob("*.json"))
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]
    ]


def _plugins(dice: random.Random, tools: int) -> list[models.Plugin]:
    count = max(2, tools // 120)
    return _insert(
        [
            models.Plugin(
                name=f"server{number:03}",
                namespace=f"server{number:03}",
                title=f"Server {number}",
                description="An example.",
                category=dice.choice(CATEGORIES),
                status="failed" if number % 31 == 30 else "ready",
                error="The server answered 502." if number % 31 == 30 else "",
                active=number % 37 != 36,
                blocked=number % 53 == 52,
                upstream={"url": f"https://server{number:03}.example.com/mcp"},
                position=number,
            )
            for number in range(count)
        ]
    )


def _tools(dice: random.Random, plugins: Sequence[models.Plugin], count: int) -> list[models.Tool]:
    real = _demo_tools()
    rows: list[models.Tool] = []
    sizes = [dice.randint(50, 200) for _ in plugins]
    owners = [plugin for plugin, size in zip(plugins, sizes, strict=True) for _ in range(size)]
    for number in range(count):
        source, plugin = real[number % len(real)], owners[number * len(owners) // count]
        rows.append(
            models.Tool(
                key=f"{plugin.name}__tool_{number:05}",
                plugin=plugin,
                title=f"Tool {number}",
                description=f"{source.get('description') or ''} ({number})",
                input_schema={
                    **(source.get("inputSchema") or {"type": "object"}),
                    "$comment": str(number),
                },
                annotations=source.get("annotations") or {},
                default_on=number % 400 == 0,
                seen=number % 50 != 49,
                retired=number % 211 == 210,
                blocked=number % 997 == 996,
                tokens=dice.randint(60, 700),
            )
        )
    return _insert(rows)


def _toolkits(dice: random.Random, tools: Sequence[models.Tool]) -> list[models.Toolkit]:
    toolkits: list[models.Toolkit] = []
    members: list[tuple[int, Sequence[models.Tool]]] = []
    start = 0
    while start < len(tools) * 0.9:
        size = dice.randint(3, 30)
        number = len(toolkits)
        bundled = list(tools[start : start + size])
        if number % 10 == 9:
            # Some also contain tools of other toolkits and servers.
            bundled = list(dict.fromkeys([*bundled, *dice.sample(tools, 4)]))
        toolkits.append(
            models.Toolkit(
                key=f"kit-{number:03}",
                title=f"Kit {number}",
                description="An example of tools that belong together.",
                policy="Work with care. Tools: {active_tools}.",
                policy_when_off="Not now." if number % 40 == 39 else "",
                triggers=[{"name": "merge", "all": [["merge", "ship"], ["release", "pr"]]}],
                blocked=number % 149 == 148,
                position=number,
            )
        )
        members.append((number, bundled))
        start += size
    toolkits = _insert(toolkits)
    _insert(
        [
            models.Member(
                toolkit=toolkits[number],
                tool=tool,
                position=position,
                options={"region": "eu"} if number % 60 == 59 and position == 0 else None,
            )
            for number, bundled in members
            for position, tool in enumerate(bundled)
        ]
    )
    return toolkits


def _loadouts(dice: random.Random, plugins: Sequence[models.Plugin], tools: Sequence[models.Tool]) -> None:
    names = [plugin.name for plugin in plugins]
    _insert(
        [
            models.Loadout(
                name=f"house-{number:02}",
                description="An example of a profile.",
                parent=f"house-{number % 10:02}" if number >= 10 else "",
                plugins=dice.sample(names, 1),
                discoverable=[f"{dice.choice(names)[:-1]}*"],
                disabled=[dice.choice(tools).key] if number % 3 == 0 else [],
                position=number,
            )
            for number in range(LOADOUTS)
        ]
    )


def _agents(
    dice: random.Random, count: int, tools: Sequence[models.Tool], toolkits: Sequence[models.Toolkit]
) -> list[models.Agent]:
    rows: list[models.Agent] = []
    for number in range(count):
        access = dice.random()
        budget = dice.random()
        rows.append(
            models.Agent(
                key=f"agent-{number:04}",
                title=f"Agent {number}",
                role=dice.choice(("support", "research", "release", "operations", "")),
                model="a-model",
                # One agent has every category, and so nearly every tool.
                loadout="full"
                if number == 0
                else f"house-{dice.randrange(LOADOUTS):02}"
                if access < 0.5
                else "",
                kind=dice.choice(KINDS) if 0.5 <= access < 0.55 else "",
                protected=number % 20 == 19,
                archived=number % 100 == 99,
                max_tools=dice.randint(20, 200) if budget < 0.2 else None,
                on_exceed=dice.choice(("warn", "refuse", "defer")) if budget < 0.2 else "warn",
                position=number,
            )
        )
    agents = _insert(rows)
    switches: list[models.ToolkitSwitch] = []
    overrides: list[models.ToolOverride] = []
    always: list[models.AgentTool] = []
    allowed: list[models.AgentToolkit] = []
    now = timezone.now()
    for agent in agents:
        for toolkit in dice.sample(toolkits, dice.randint(2, min(12, len(toolkits)))):
            switches.append(models.ToolkitSwitch(agent=agent, toolkit=toolkit, on=dice.random() < 0.8))
            if dice.random() < 0.05:
                switches[-1].ends, switches[-1].by = now + dt.timedelta(hours=dice.randint(-3, 48)), "olive"
        for tool in dice.sample(tools, dice.randint(0, 6)):
            overrides.append(models.ToolOverride(agent=agent, tool=tool, on=dice.random() < 0.6))
            if dice.random() < 0.1:
                overrides[-1].ends, overrides[-1].by = now + dt.timedelta(hours=dice.randint(-3, 48)), "olive"
        always += [
            models.AgentTool(agent=agent, tool=tool, position=position)
            for position, tool in enumerate(dice.sample(tools, dice.randint(0, 3)))
        ]
        may_load = (
            dice.sample(toolkits, dice.randint(0, min(8, len(toolkits)))) if dice.random() < 0.5 else []
        )
        allowed += [
            models.AgentToolkit(agent=agent, toolkit=toolkit, initial=position == 0, position=position)
            for position, toolkit in enumerate(may_load)
        ]
    for rows_of_model in (switches, overrides, always, allowed):
        _insert(rows_of_model)
    return agents


def _sub_apps(dice: random.Random, agents: Sequence[models.Agent], tools: Sequence[models.Tool]) -> None:
    rows = _insert([models.SubApp(key=f"app-{n}", title=f"App {n}", position=n) for n in range(10)])
    _insert(
        [
            models.SubAppTool(sub_app=row, tool=tool, position=position)
            for row in rows
            for position, tool in enumerate(dice.sample(tools, min(8, len(tools))))
        ]
    )
    _insert(
        [
            models.SubAppAgent(sub_app=row, agent=agent, position=position)
            for row in rows
            for position, agent in enumerate(dice.sample(agents, min(20, len(agents))))
        ]
    )


def _tokens(dice: random.Random, agents: Sequence[models.Agent]) -> None:
    olive = get_user_model().objects.create_superuser("olive")
    _insert(
        [
            models.ApiToken(
                prefix=f"tb_{number:08}",
                digest=f"{dice.getrandbits(256):064x}",
                name="example",
                agent=agent,
            )
            for number, agent in enumerate(agents)
        ]
        + [
            models.ApiToken(
                prefix=f"tb_o{number:07}", digest=f"{dice.getrandbits(256):064x}", user=olive, scope="read"
            )
            for number in range(20)
        ]
    )
    _insert(
        [
            models.AgentSession(agent=agent, key=f"chat-{number}", state={})
            for agent in agents
            for number in range(60 if agent.key == AGENT else 3)
        ]
    )


def _activity(
    dice: random.Random,
    agents: Sequence[models.Agent],
    tools: Sequence[models.Tool],
    toolkits: Sequence[models.Toolkit],
    changes: int,
    calls: int,
) -> None:
    now = timezone.now()

    def random_times(count: int) -> list[dt.datetime]:
        return sorted(now - dt.timedelta(seconds=dice.randrange(DAYS * 86_400)) for _ in range(count))

    entries: list[models.AuditEntry] = []
    for at in random_times(changes):
        on = dice.random() < 0.7
        entries.append(
            models.AuditEntry(
                at=at,
                actor=dice.choice(("olive", "otto", "oona")),
                via=dice.choice(("screen", "api")),
                action="switch.set",
                subject_kind="agent",
                subject_key=dice.choice(agents).key,
                key=dice.choice(toolkits).key,
                before=not on,
                after=on,
            )
        )
    _insert(entries)
    _insert(
        [
            models.CallRecord(
                at=at,
                agent=dice.choice(agents).key,
                session="chat-1",
                # A few of the tools are called often.
                tool=(tool := tools[min(int(dice.expovariate(1 / 150)), len(tools) - 1)]).key,
                plugin=tool.key.partition("__")[0],
                outcome="ok" if dice.random() < 0.95 else "tool-failed",
                duration_ms=dice.randrange(5, 900),
            )
            for at in random_times(calls)
        ]
    )
