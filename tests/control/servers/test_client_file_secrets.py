"""Tests that files of MCP clients are imported without their secrets, and with the variables to set."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.control.servers.imported_files import FILES, converted, everything_stored, stored_connections
from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import importing

pytestmark = pytest.mark.django_db


# The servers of each file, in order, and the variables to set.
EXPECTED: dict[str, tuple[list[str], list[str]]] = {
    "claude_desktop_config.json": (
        ["filesystem", "github", "linear"],
        ["GITHUB_PERSONAL_ACCESS_TOKEN", "LINEAR_TOKEN"],
    ),
    "mcp.json": (["sentry", "postgres"], ["SENTRY_TOKEN", "DATABASE_URI"]),
    "vscode_mcp.json": (["perplexity", "wiki"], ["PERPLEXITY_KEY", "WIKI_X_API_KEY"]),
    "cursor_mcp.json": (
        ["Figma_Files", "slack", "notes"],
        ["FIGMA_FILES_X_FIGMA_TOKEN", "SLACK_BOT_TOKEN", "NOTES_KEY"],
    ),
    "codex_config.toml": (
        ["context7", "notion", "old"],
        ["CONTEXT7_API_KEY", "NOTION_X_WORKSPACE_SECRET", "NOTION_TOKEN"],
    ),
    "gemini_settings.json": (["maps", "bigquery"], ["MAPS_TOKEN", "PROJECT", "BIGQUERY_API_SECRET"]),
    "zed_settings.json": (["supabase", "older"], ["SUPABASE_ACCESS_TOKEN", "OLDER_PASSWORD"]),
    "opencode.json": (["jira", "everything"], ["JIRA_TOKEN", "JIRA_X_SESSION_ID", "STRIPE_KEY"]),
    "windsurf_mcp_config.json": (["figma", "cline-style", "off-here"], ["FIGMA_PATH", "API_TOKEN"]),
    "server.json": (["weather"], ["WEATHER_API_KEY"]),
}


def test_every_sample_file_has_an_expected_result() -> None:
    assert {file.name for file in FILES.iterdir()} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_clients_file_is_imported_without_its_secrets(
    name: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    servers, variables = EXPECTED[name]
    assert re.search("SECRET", (FILES / name).read_text())
    call_command("mcp", "import", str(FILES / name))
    printed = capsys.readouterr()
    assert [*stored_connections()] == servers
    for variable in variables:
        assert f"\n  {variable}\n" in printed.out
    used = {variable for server in stored_connections().values() for variable in server.variables()}
    assert used == {*variables}
    written = everything_stored() + printed.out + printed.err + caplog.text
    assert not re.search(r"SECRET\d", written)
    # Imported servers are not trusted, even if the client trusts them.
    assert not any(server.plugin.trusted for server in upstream_servers.servers())


def test_values_that_are_not_secret_are_kept() -> None:
    for name in ("claude_desktop_config.json", "cursor_mcp.json", "codex_config.toml", "opencode.json"):
        call_command("mcp", "import", str(FILES / name), verbosity=0)
    stored = stored_connections()
    assert stored["filesystem"].args[-2:] == ("/srv/shared", "/home/ada/notes")
    assert stored["slack"].args[3:7] == ("-e", "SLACK_BOT_TOKEN", "-e", "SLACK_TEAM_ID")
    assert stored["slack"].env == {"SLACK_TEAM_ID": "T01234567", "SLACK_BOT_TOKEN": "${SLACK_BOT_TOKEN}"}
    # The mcp-remote bridge is left out, and its header belongs to the server.
    assert (stored["linear"].url, stored["linear"].headers) == (
        "https://mcp.linear.app/mcp",
        {"Authorization": "Bearer ${LINEAR_TOKEN}"},
    )
    assert (stored["context7"].timeout, stored["everything"].command) == (45, "npx")
    assert stored["notion"].headers["Authorization"] == "Bearer ${NOTION_TOKEN}"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-e", "API_KEY=SECRET0123456789"], ["-e", "API_KEY"]),
        (["-eAPI_KEY=SECRET0123456789"], ["-eAPI_KEY"]),
        (["-eS3_PASS=SECRET0123456789"], ["-eS3_PASS"]),
        (["--env", "API_KEY=SECRET0123456789"], ["--env", "API_KEY"]),
        (["--env=API_KEY=SECRET0123456789"], ["--env=API_KEY"]),
    ],
)
def test_container_variables_are_passed_on_by_name(args: list[str], expected: list[str]) -> None:
    server = {"command": "docker", "args": ["run", "-i", *args, "mcp/x", "-env=a", "--mode=a=b"]}
    [converted] = importing.preview(json.dumps({"mcpServers": {"x": server}})).servers
    assert converted.connection["args"] == ["run", "-i", *expected, "mcp/x", "-env=a", "--mode=a=b"]
    [name] = re.findall(r"[A-Z]\w+", expected[-1])
    assert converted.connection["env"] == {name: f"${{{name}}}"}


def test_secrets_of_the_same_name_become_different_variables() -> None:
    servers = {
        name: {"command": "x", "env": {"API_KEY": f"SECRET{name}-0123456789"}} for name in ("one", "two")
    }
    preview = importing.preview(json.dumps({"mcpServers": servers}))
    assert preview.variables == ("API_KEY", "MCP_TWO_API_KEY")


@pytest.mark.parametrize(
    "words",
    [
        ["-y", "@modelcontextprotocol/server-sequential-thinking@2025.12.18"],
        ["--from", "git+https://github.com/acme/tool@5f1b3c1e9c4d4c5b8f1d2e7f6a5b4c3d5f1b3c1e", "tool"],
        ["--from", "git+https://github.com/acme/tool@0a1b2c3d4e5f6789abc1", "tool"],
        ["run", "ghcr.io/acme/mcp@sha256:" + "5f1b3c1e9c4d4c5b" * 4],
        [
            "--token-file",
            "/run/secrets/token",
            "--max-tokens",
            "4000",
            "--api-key=${API_KEY}",
            "--auth",
            "false",
        ],
        [
            "/nix/store/5f1b3c1e9c4d4c5b8f1d2e7f6a5b4c3d-tool/bin/tool",
            "--config=/srv/5f1b3c1e9c4d4c5b8f1d2e7f6a5b4c3d",
        ],
        [
            "https://api.example.com/v1/mcp",
            "--local-timezone=Europe/Berlin",
            "--project-ref=abcdefghijklmnopqrst",
        ],
    ],
)
def test_versions_paths_and_urls_in_a_command_line_are_not_secrets(words: list[str]) -> None:
    [server] = importing.preview(json.dumps({"mcpServers": {"x": {"command": "npx", "args": words}}})).servers
    assert server.connection["args"] == words


@pytest.mark.parametrize(
    "words",
    [
        ["--password", "hunter2"],
        ["--token=hunter2"],
        ["--connection-string", "Server=db;User=sa;Password=P4ss;"],
        ["/secret1234567890abcd1234abcd"],
        ["sk1234567890abcd1234abcd"],
    ],
)
def test_a_possible_secret_in_a_command_line_is_refused(words: list[str]) -> None:
    text = json.dumps({"mcpServers": {"x": {"command": "npx", "args": words}}})
    with pytest.raises(
        importing.UnusableServers, match=r"may contain a secret|looks like a secret"
    ) as refused:
        importing.preview(text)
    assert "hunter2" not in str(refused.value)


def test_a_key_is_named_without_what_is_hidden_or_secret_in_it() -> None:
    secret = "ghp_" + "a1B2" * 9
    server = converted({"url": "https://x.example/mcp", f"a\u202e{secret}": 1})

    assert server.unused == ("a[U+202E][withheld]",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", "Zwei$tier9blau"),
        ("DB_PASSWORD", "Zwei${tier}blau"),
        ("DB_PASSWORD", "a${env:TIER}b"),
        ("API_KEY", "%API_KEY%"),
        ("API_KEY", "$API_KEY"),
        ("MY_DB_URL", "postgres://ada:Zwei$tier9blau@db/x"),
        ("NOTE", "ghp_" + "a1B2" * 9 + "$five"),
        ("PIN_SECRET", "1234"),
    ],
)
@pytest.mark.parametrize("client", [{}, {"selectedAuthType": "gemini-api-key"}])
def test_a_value_that_looks_secret_is_withheld_whole_in_every_client(
    name: str, value: str, client: dict[str, str]
) -> None:
    if client and value.startswith("$"):
        return  # a reference there

    server = converted({"command": "y", "env": {name: value}}, **client)

    assert server.connection["env"] == {name: f"${{{name}}}"}
    assert (server.variables, server.withheld) == ([name], {f"env.{name}": name})


@pytest.mark.parametrize(
    ("server", "withheld"),
    [
        (
            {"url": "https://y.example/mcp", "headers": {"X-Api-Key": "Zwei$tier9blau"}},
            {"headers.X-Api-Key": "X_X_API_KEY"},
        ),
        (
            {"url": "https://y.example/mcp", "headers": {"Authorization": "Bearer a${TIER}b1"}},
            {"headers.Authorization": "X_TOKEN"},
        ),
        ({"url": "https://y.example/mcp?api_key=Zwei$tier9blau"}, {"url?api_key": "X_API_KEY"}),
        ({"url": "https://y.example/mcp?key=a${TIER}b"}, {"url?key": "X_KEY"}),
        ({"url": "https://y.example/ghp_" + "a1B2" * 9 + "/mcp"}, {"url": "X_PATH"}),
    ],
)
def test_a_secret_in_a_header_or_url_is_withheld_whole(
    server: dict[str, Any], withheld: dict[str, str]
) -> None:
    result = converted(server)

    assert (result.problem, result.withheld, result.variables) == ("", withheld, [*withheld.values()])
    assert "ier9blau" not in str(result)
    assert "TIER" not in str(result)


@pytest.mark.parametrize(
    "server",
    [
        {"url": "https://ada:Zwei$tier9blau@y.example/mcp"},
        {"url": "https://hooks.slack.com/services/T0000/B0000/Zweitier9blau0123456789"},
        {"command": "y", "args": ["--password", "Zwei$tier9blau"]},
        {"command": "y", "args": ["--password=Zwei${tier}9blau"]},
        {"command": "y", "args": ["postgres://ada:Zwei$tier9blau@db/x"]},
    ],
)
def test_a_secret_that_cannot_become_a_variable_is_refused_and_not_quoted(server: dict[str, Any]) -> None:
    result = converted(server)

    assert result.problem
    assert "ier9blau" not in str(result)


def test_a_bare_name_is_a_reference_only_in_the_files_of_gemini_cli() -> None:
    server = {"command": "y", "env": {"REGION": "$REGION", "NOTE": "costs $five", "API_KEY": "$API_KEY"}}

    elsewhere, gemini = converted(server), converted({**server, "trust": True})

    assert elsewhere.connection["env"] == {
        "REGION": "$REGION",
        "NOTE": "costs $five",
        "API_KEY": "${API_KEY}",
    }
    assert (elsewhere.variables, elsewhere.withheld) == (["API_KEY"], {"env.API_KEY": "API_KEY"})
    assert "$REGION is passed on as it is written" in " ".join(elsewhere.notes)
    assert gemini.connection["env"] == {
        "REGION": "${REGION}",
        "NOTE": "costs ${FIVE}",
        "API_KEY": "${API_KEY}",
    }
    assert gemini.withheld == {}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("${DATA_DIR}", "${DATA_DIR}"),
        ("${env:DATA_DIR}", "${DATA_DIR}"),
        ("${env.DATA_DIR}", "${DATA_DIR}"),
        ("{env:DATA_DIR}", "${DATA_DIR}"),
        ("/srv/${DATA_DIR:-x}/y", "/srv/${DATA_DIR:-x}/y"),
        ("${env:DATA_DIR:-/srv/x}", "${DATA_DIR:-/srv/x}"),
        ("${userHome}/x", "${HOME}/x"),
    ],
)
def test_a_variable_is_read_in_every_field(written: str, stored: str) -> None:
    of_command = converted(
        {"command": f"{written}/bin", "args": ["--dir", written], "cwd": written, "env": {"DIR": written}}
    )
    of_url = converted({"url": f"https://y.example/{written}", "headers": {"Accept": written}})

    assert of_command.connection == {
        "command": f"{stored}/bin",
        "args": ["--dir", stored],
        "cwd": stored,
        "env": {"DIR": stored},
    }
    assert of_url.connection == {"url": f"https://y.example/{stored}", "headers": {"Accept": stored}}


@pytest.mark.parametrize(
    "server",
    [
        {"command": "y", "env": {"API_KEY": "${API_KEY:-sk-ant-Zwei0tier9blau0123456789}"}},
        {"command": "y", "args": ["--key", "${API_KEY:-Zwei0tier9blau0123456789}"]},
        {"url": "https://y.example/mcp", "headers": {"Authorization": "Bearer ${API_KEY:-Zwei0tier9blau}"}},
        {"url": "https://y.example/mcp", "headers": {"X-Team": "${API_KEY:-tier9blau}"}},
    ],
)
def test_a_default_that_is_a_secret_is_withheld(server: dict[str, Any]) -> None:
    result = converted(server)

    assert (result.problem, result.variables) == ("", ["API_KEY"])
    assert "ier9blau" not in str(result)


def test_the_host_of_a_url_is_written_out_by_its_default() -> None:
    server = converted({"url": "${BASE:-https://api.example.com}/${TENANT}/mcp"})
    missing = converted({"url": "https://${HOST}:${PORT}/mcp"})

    assert server.connection == {"url": "https://api.example.com/${TENANT}/mcp"}
    assert server.notes == [
        "BASE is not used: its default is written out, because the host of a URL is no variable."
    ]
    assert "The host of its URL is in the variable HOST" in missing.problem


def test_what_was_withheld_is_printed_with_the_variable_to_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps({"mcpServers": {"x": {"command": "y", "env": {"DB_PASSWORD": "Zwei$tier9blau"}}}})
    )

    call_command("mcp", "import", str(file))

    printed = capsys.readouterr().out
    assert "Withheld: env.DB_PASSWORD. Set DB_PASSWORD." in printed
    assert "tier9blau" not in (everything_stored() + printed + caplog.text).lower()
