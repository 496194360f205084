"""Coding agents that people use: how to configure each for Toolbelt and its model, and how to prompt it.

The configuration for Toolbelt is the documented one. The rest makes it use a model on this machine, and
leave the network alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kit

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs/how-to/connect-an-mcp-client.md"
PROMPT = "Add 2 and 40 with the tool."


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent runs: a home of its own with an empty project in it, and the address of its model."""

    home: Path
    project: Path
    model: str

    def write(self, name: str, content: str | Mapping[str, Any]) -> None:
        """Write a file of the home directory."""
        where = self.home / name
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(
            content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program: ``program`` is what it is called or where it is in its package; ``setup`` writes its configuration.

    ``commands`` are run before it, in its place; ``prefix`` stands before the names of Toolbelt's tools.
    """

    name: str
    package: str
    program: str
    arguments: Sequence[str]
    prefix: str
    setup: Callable[[Place], None]
    env: Callable[[Place], Mapping[str, str]] = lambda place: {}
    commands: Callable[[Place], Sequence[str]] = lambda place: []


def shown(label: str) -> str:
    """Return the configuration that the documentation shows for a client, with the address of this server in it."""
    page = DOCUMENTED.read_text(encoding="utf-8")
    section = page.partition(f"\n**{label}**")[2]
    block = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)
    assert block, f"nothing is shown for {label}"
    text = block[1].replace("https://toolbelt.example", kit.ADDRESS).replace("YOUR_TOKEN", kit.TOKEN)
    return re.sub(r"/mcp/assistant", f"/mcp/{kit.AGENT}", text)


def _json(label: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(label))
    return found


def _claude_code(place: Place) -> Sequence[str]:
    return [shown("Claude Code").removeprefix("$ ")]


def _codex(place: Place) -> None:
    model = f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{place.model}/v1"\nwire_api = "responses"\n'
    text = f'model = "scripted"\nmodel_provider = "scripted"\n\n{model}\n{shown("Codex")}'
    place.write(".codex/config.toml", text)


def _gemini(place: Place) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    place.write(".gemini/settings.json", {**settings, **_json("Gemini CLI")})


def _qwen(place: Place) -> None:
    settings = {
        # Else the model searches for the tools that it wants.
        "tools": {"toolSearch": {"enabled": False}},
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    place.write(".qwen/settings.json", {**settings, **_json("Gemini CLI")})


def _opencode(place: Place) -> None:
    place.write("project/opencode.json", _of_opencode(place))


def _kilo(place: Place) -> None:
    # It was made of opencode when servers still stood directly under mcp, and takes none from a project.
    found = _of_opencode(place)
    place.write(
        ".config/kilo/kilo.json", {**found, "mcp": found["mcp"]["servers"], "permission": {"*": "allow"}}
    )


def _of_opencode(place: Place) -> dict[str, Any]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.model}/v1", "apiKey": "none"},
        "models": {"scripted": {}},
    }
    more = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
    }
    return {**_json("opencode"), **more}


def _continue(place: Place) -> None:
    place.write(
        "config.yaml",
        {
            "name": "interop",
            "version": "1.0.0",
            "schema": "v1",
            "models": [
                {
                    "name": "scripted",
                    "provider": "openai",
                    "model": "scripted",
                    "apiKey": "none",
                    "apiBase": f"{place.model}/v1",
                    "roles": ["chat"],
                    "capabilities": ["tool_use"],
                }
            ],
            "mcpServers": [
                {
                    "name": "toolbelt",
                    "type": "streamable-http",
                    "url": f"{kit.ADDRESS}/mcp/{kit.AGENT}",
                    "requestOptions": {"headers": {"Authorization": f"Bearer {kit.TOKEN}"}},
                }
            ],
        },
    )


def _cline_model(place: Place) -> Sequence[str]:
    return [f"cline auth --provider openai --apikey none --modelid scripted --baseurl {place.model}/v1"]


def _cline(place: Place) -> None:
    place.write(".cline/data/settings/cline_mcp_settings.json", _json("Cline"))


def _copilot(place: Place) -> None:
    place.write(".copilot/mcp-config.json", _json("Copilot CLI"))


AGENTS = [
    Agent(
        name="claude-code",
        package="@anthropic-ai/claude-code",
        program="@anthropic-ai/claude-code-linux-x64/claude",
        arguments=["-p", PROMPT, "--allowedTools", "mcp__toolbelt"],
        prefix="mcp__toolbelt__",
        setup=lambda place: None,
        commands=_claude_code,
        env=lambda place: {
            "ANTHROPIC_BASE_URL": place.model,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Else the model is shown names first, and searches for the tools that it wants.
            "ENABLE_TOOL_SEARCH": "false",
            # Else its first turn does not wait for a server that takes longer than some seconds, on a busy machine.
            "MCP_CONNECTION_NONBLOCKING": "false",
            "MCP_CONNECT_TIMEOUT_MS": "60000",
        },
    ),
    Agent(
        name="codex",
        package="@openai/codex",
        program="codex",
        arguments=["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
        prefix="mcp__toolbelt",
        setup=_codex,
    ),
    Agent(
        name="gemini-cli",
        package="@google/gemini-cli",
        program="gemini",
        arguments=["-p", PROMPT, "--yolo", "-m", "gemini-2.5-flash"],
        prefix="mcp_toolbelt_",
        setup=_gemini,
        env=lambda place: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": place.model,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    Agent(
        name="qwen-code",
        package="@qwen-code/qwen-code",
        program="qwen",
        arguments=["-p", PROMPT, "--yolo"],
        prefix="mcp__toolbelt__",
        setup=_qwen,
        env=lambda place: {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{place.model}/v1",
            "OPENAI_MODEL": "scripted",
        },
    ),
    Agent(
        name="opencode",
        package="opencode-ai",
        program="opencode-linux-x64/bin/opencode",
        arguments=["run", PROMPT],
        prefix="toolbelt_",
        setup=_opencode,
        env=lambda place: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    Agent(
        name="kilo",
        package="@kilocode/cli",
        program="@kilocode/cli-linux-x64/bin/kilo",
        arguments=["run", "--auto", PROMPT],
        prefix="toolbelt_",
        setup=_kilo,
        env=lambda place: {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1"},
    ),
    Agent(
        name="continue",
        package="@continuedev/cli",
        program="cn",
        arguments=["-p", "--auto", "--config", "../config.yaml", PROMPT],
        prefix="",
        setup=_continue,
        env=lambda place: {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_DISABLE_AUTO_UPDATE": "1"},
    ),
    Agent(
        name="cline",
        package="cline",
        program="cline",
        arguments=[PROMPT],
        prefix="toolbelt__",
        setup=_cline,
        commands=_cline_model,
    ),
    Agent(
        name="copilot-cli",
        package="@github/copilot",
        program="copilot",
        arguments=["-p", PROMPT, "--allow-all-tools"],
        prefix="toolbelt-",
        setup=_copilot,
        env=lambda place: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{place.model}/v1",
            "COPILOT_MODEL": "scripted",
        },
    ),
]
