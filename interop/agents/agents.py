"""Coding agents: the configuration of each for Toolbelt and for its model, and its command line.

The configuration for Toolbelt is the documented one. The rest makes an agent use a model on this machine and
no network.
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
class Workspace:
    """A new home directory with an empty project, and the address of the model."""

    home: Path
    project: Path
    model: str

    def write(self, name: str, content: str | Mapping[str, Any]) -> None:
        """Write a file below the home directory."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent. ``program`` is its name, or its path in its package; ``setup`` writes its configuration.

    ``commands`` are run before it, in its workspace. ``prefix`` precedes the names of Toolbelt's tools. ``searches``:
    it speaks revision 2026-07-28, in which a constant list has only ``search_tools`` and ``call_tool``.
    """

    name: str
    package: str
    program: str
    arguments: Sequence[str]
    prefix: str
    setup: Callable[[Workspace], None]
    env: Callable[[Workspace], Mapping[str, str]] = lambda workspace: {}
    commands: Callable[[Workspace], Sequence[str]] = lambda workspace: []
    searches: bool = False


def documented_config(label: str) -> str:
    """Return the documented configuration of a client, with the address of this server."""
    page = DOCUMENTED.read_text(encoding="utf-8")
    section = page.partition(f"\n**{label}**")[2]
    block = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)
    assert block, f"the documentation has no configuration for {label}"
    text = block[1].replace("https://toolbelt.example", kit.ADDRESS).replace("YOUR_TOKEN", kit.TOKEN)
    return re.sub(r"/mcp/assistant", f"/mcp/{kit.AGENT}", text)


def _json(label: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(documented_config(label))
    return config


def _claude_code(workspace: Workspace) -> Sequence[str]:
    return [documented_config("Claude Code").removeprefix("$ ")]


def _codex(workspace: Workspace) -> None:
    provider = f'name = "scripted"\nbase_url = "{workspace.model}/v1"\nwire_api = "responses"\n'
    model = f"[model_providers.scripted]\n{provider}"
    text = f'model = "scripted"\nmodel_provider = "scripted"\n\n{model}\n{documented_config("Codex")}'
    workspace.write(".codex/config.toml", text)


def _gemini(workspace: Workspace) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    workspace.write(".gemini/settings.json", {**settings, **_json("Gemini CLI")})


def _qwen(workspace: Workspace) -> None:
    settings = {
        # Otherwise, the model searches for tools.
        "tools": {"toolSearch": {"enabled": False}},
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    workspace.write(".qwen/settings.json", {**settings, **_json("Gemini CLI")})


def _opencode(workspace: Workspace) -> None:
    workspace.write("project/opencode.json", _opencode_config(workspace))


def _kilo(workspace: Workspace) -> None:
    # Kilo is based on an older opencode, which has servers directly under mcp. It reads none from a project.
    config = _opencode_config(workspace)
    workspace.write(
        ".config/kilo/kilo.json", {**config, "mcp": config["mcp"]["servers"], "permission": {"*": "allow"}}
    )


def _opencode_config(workspace: Workspace) -> dict[str, Any]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{workspace.model}/v1", "apiKey": "none"},
        "models": {"scripted": {}},
    }
    more = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
    }
    return {**_json("opencode"), **more}


def _continue(workspace: Workspace) -> None:
    workspace.write(
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
                    "apiBase": f"{workspace.model}/v1",
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


def _cline_model(workspace: Workspace) -> Sequence[str]:
    return [f"cline auth --provider openai --apikey none --modelid scripted --baseurl {workspace.model}/v1"]


def _cline(workspace: Workspace) -> None:
    workspace.write(".cline/data/settings/cline_mcp_settings.json", _json("Cline"))


def _copilot(workspace: Workspace) -> None:
    workspace.write(".copilot/mcp-config.json", _json("Copilot CLI"))


AGENTS = [
    Agent(
        name="claude-code",
        package="@anthropic-ai/claude-code",
        program="@anthropic-ai/claude-code-linux-x64/claude",
        arguments=["-p", PROMPT, "--allowedTools", "mcp__toolbelt"],
        prefix="mcp__toolbelt__",
        setup=lambda workspace: None,
        commands=_claude_code,
        env=lambda workspace: {
            "ANTHROPIC_BASE_URL": workspace.model,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Otherwise, the model first receives only names, and searches for tools.
            "ENABLE_TOOL_SEARCH": "false",
            # Otherwise, the first turn does not wait for a server that takes a few seconds on a busy machine.
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
        env=lambda workspace: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": workspace.model,
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
        env=lambda workspace: {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{workspace.model}/v1",
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
        env=lambda workspace: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    Agent(
        name="kilo",
        package="@kilocode/cli",
        program="@kilocode/cli-linux-x64/bin/kilo",
        arguments=["run", "--auto", PROMPT],
        prefix="toolbelt_",
        setup=_kilo,
        env=lambda workspace: {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1"},
    ),
    Agent(
        name="continue",
        package="@continuedev/cli",
        program="cn",
        arguments=["-p", "--auto", "--config", "../config.yaml", PROMPT],
        prefix="",
        setup=_continue,
        env=lambda workspace: {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_DISABLE_AUTO_UPDATE": "1"},
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
        searches=True,
        setup=_copilot,
        env=lambda workspace: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{workspace.model}/v1",
            "COPILOT_MODEL": "scripted",
        },
    ),
]
