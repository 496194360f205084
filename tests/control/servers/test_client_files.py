"""Tests that servers are imported from files of MCP clients: whole, under review, and without their secrets."""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import importing, reading
from toolbelt.core import connections, errors, variables
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db

FILES = Path(__file__).parent / "client_files"
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


def stored_connections() -> dict[str, connections.Connection]:
    return {server.plugin.name: server.connection for server in upstream_servers.servers()}


def everything_stored() -> str:
    """Return the content of all tables as text."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            texts += [repr(row) for row in cursor.fetchall()]
    return "\n".join(texts)


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


def test_a_dry_run_stores_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("mcp", "import", str(FILES / "mcp.json"), "--dry-run")
    assert "sentry: https://mcp.sentry.dev/mcp" in capsys.readouterr().out
    assert stored_connections() == {}


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


BAD: dict[str, tuple[str, str]] = {
    "invalid JSON": (
        '{\n  "mcpServers": {\n    "x": {"command": "y",, }\n  }\n}',
        r"line 3: This is not JSON",
    ),
    "invalid TOML": ('[mcp_servers.x]\ncommand = "y\n', r"line 2: This is not TOML"),
    "a repeated key": (
        '{"mcpServers": {\n"x": {"command": "a"},\n"x": {"command": "b"}}}',
        r"line 3: .*twice",
    ),
    "a list without servers": ("[]", r"The file has no servers"),
    "an empty file": ("\n", r"The file is empty"),
    "words": ("an instruction", r"line 1: The file must contain an object"),
    "a header's name with a colon": (
        '{"mcpServers": {"x": {"url": "https://example.com/mcp", "headers": {"Authorization:": "${T}"}}}}',
        r"x: headers.Authorization:: 'Authorization:' is not the name of a header",
    ),
    "a header that is not ASCII": (
        '{"mcpServers": {"x": {"url": "https://example.com/mcp", "headers": {"X-Team": "Büro"}}}}',
        r"x: headers.X-Team contains a character that a header cannot have",
    ),
    "names that differ in case": (
        '{"mcpServers": {"x y": {"command": "a"},\n"X_Y": {"command": "b"}}}',
        r"line 2, X_Y: Its tools would be named X_Y__…, as those of the server 'x y' in the file, if case is ignored",
    ),
    "no servers": ('{"theme": "dark"}', r"The file has no servers"),
    "an empty server": ('{"mcpServers": {\n"x": {}}}', r"line 2, x: It has neither a command nor a URL"),
    "a server that is not an object": (
        '{"mcpServers": {\n\n"x": 5}}',
        r"line 3, x: A server must be an object",
    ),
    "arguments that are no list": (
        '{"mcpServers": {"x": {"command": "y", "args": {"a": "--read-only"}}}}',
        r"x: Its arguments must be a list",
    ),
    "variables as a list": (
        '{"mcpServers": {"x": {"command": "y", "env": ["A=1"]}}}',
        r"x: Its variables and headers must be objects",
    ),
    "headers as text": (
        '{"mcpServers": {"x": {"url": "https://example.com/mcp", "headers": "A: b"}}}',
        r"x: Its variables and headers must be objects",
    ),
    "a client's folder": (
        '{"servers": {"x": {"command": "y", "args": ["${workspaceFolder}/z"]}}}',
        r"It uses \$\{workspaceFolder\}",
    ),
    "a secret argument": (
        '{"mcpServers": {"x": {"command": "y", "args": ["--api-key", "SECRET9999-abcdefgh"]}}}',
        r"args: This looks like a secret",
    ),
    "a header as an argument": (
        '{"mcpServers": {"x": {"command": "y", "args": ["--header", "Authorization: Bearer SECRET9999"]}}}',
        r"args: This looks like a secret",
    ),
    "a password in a URL": (
        '{"mcpServers": {"x": {"url": "https://ada:SECRET99@example.com/mcp"}}}',
        r"Its URL contains a user name or a password",
    ),
    "a key as an argument": (
        '{"mcpServers": {"x": {"command": "npx", "args": ["run", "--key", "SECRET1a-5f1b3c1e-9c4d-4c5b-8f1d"]}}}',
        r"line 1, x: Its command line may contain a secret",
    ),
    "a key in JSON as an argument": (
        '{"mcpServers": {"x": {"command": "npx", "args": ["-c", "{\\"exaKey\\": \\"SECRET0a1b2c3d4e5f\\"}"]}}}',
        r"x: Its command line may contain a secret",
    ),
    "a key before the command": (
        '{"mcpServers": {"x": {"command": "API_KEY=SECRET0a1b2c3d4e5f npx"}}}',
        r"x: Its command line may contain a secret",
    ),
    "a value that is not text": (
        '{"mcpServers": {"x": {"command": "y", "env": {"PORT": 80, "HOST": [1]}}}}',
        r"x: env\.HOST must be text",
    ),
    "an argument that is not text": (
        '{"mcpServers": {"x": {"command": "y", "args": ["a", {"b": 1}]}}}',
        r"x: args\[1\] must be text",
    ),
    "an escaped name": (
        '{"mcpServers": {\n"\\u00e4 x": {"command": "y", "args": 1}}}',
        r"line 2, ä x: Its arguments must be a list",
    ),
    "a file of variables": (
        '{"servers": {"x": {"command": "y", "envFile": ".env"}}}',
        r"x: It reads variables from a file \(envFile\)",
    ),
    "two servers with the same name": (
        '{"mcpServers": {"x y": {"command": "a"},\n"x_y": {"command": "b"}}}',
        r"line 2, x_y: Its tools would be named x_y__…, as those of the server 'x y' in the file, if case",
    ),
    "a list with a server without a name": (
        '{"mcpServers": [{"name": "first", "command": "a"}, {"url": 5}]}',
        r"server 2: url: A URL begins with",
    ),
    "a URL with a variable of the registry": (
        '{"name": "a/x", "remotes": [{"type": "streamable-http", "url": "https://{tenant}.example.com/mcp",'
        ' "variables": {"tenant": {"isRequired": true}}}]}',
        r"x: Its URL needs a value for \{tenant\}",
    ),
    "an argument with a variable of the registry": (
        '{"name": "a/x", "packages": [{"registryType": "npm", "identifier": "y", "packageArguments":'
        ' [{"type": "named", "name": "--db", "value": "{path}/x", "variables": {"path": {}}}]}]}',
        r"Its argument path has no value",
    ),
    "a required argument": (
        '{"name": "a/x", "packages": [{"registryType": "npm", "identifier": "y", "packageArguments":'
        ' [{"type": "positional", "valueHint": "folder", "isRequired": true}]}]}',
        r"Its argument folder has no value",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_line_and_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reason = BAD[name]
    # Where possible, a valid server precedes the bad one.
    text = text.replace('{"mcpServers": {', '{"mcpServers": {"sound": {"command": "z"},')
    file = tmp_path / ("config.toml" if name == "invalid TOML" else "mcp.json")
    file.write_text(text)
    with pytest.raises(CommandError, match=reason) as raised:
        call_command("mcp", "import", str(file))
    assert stored_connections() == {}
    # --only is suggested only if the file can be read and has servers.
    assert ("--only" in str(raised.value)) == bool(re.search(r" (x|x_y|X_Y|server 2): ", str(raised.value)))
    assert "SECRET" not in str(raised.value) + everything_stored() + capsys.readouterr().out


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


def test_a_file_of_the_registry_api_is_imported_with_its_variables() -> None:
    package = {
        "registryType": "oci",
        "identifier": "acme/x:1",
        "runtimeArguments": [
            {"type": "named", "name": "-e", "value": "REGION={region}", "variables": {"region": {}}},
            {"type": "named", "name": "--cpus", "value": "{n}", "variables": {"n": {"default": 2}}},
        ],
    }
    preview = importing.preview(
        json.dumps({"server": {"name": "com.acme/x", "packages": [package]}, "_meta": {}})
    )
    [server] = preview.servers
    assert server.connection["args"] == ["run", "-i", "--rm", "-e", "REGION", "--cpus", "2", "acme/x:1"]
    assert (server.connection["env"], preview.variables) == ({"REGION": "${REGION}"}, ("REGION",))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, ' + "/" * 36 + " x",
        '{"a": 1, ' + "//\n" * 40 + " x",
        "{" + "/*" * 400_000,
        "{" + ",//\n" * 200_000,
        '{"' + '\\"' * 400_000,
        "{" + ", " * 400_000,
        "{" + ",".join(f'"{number}": 1' for number in [*range(60_000), 59_999]) + "}",
    ],
    ids=["slashes", "comments", "openings", "commas", "quotes", "spaces", "keys"],
)
def test_each_place_of_an_invalid_file_is_read_only_once(text: str) -> None:
    with pytest.raises(errors.Invalid, match="This is not JSON"):
        reading.read(text, is_toml=False)


def test_comments_and_trailing_commas_are_allowed_outside_texts() -> None:
    text = """{
        // one, /* two
        "url": "https://example.com/a,}//b/*c*/", /* three,
        */ "args": [1, 2, // ]
        /* four */ ],
        "quoted": "\\",}",
    }"""
    assert reading.read(text, is_toml=False) == {
        "url": "https://example.com/a,}//b/*c*/",
        "args": [1, 2],
        "quoted": '",}',
    }


def test_the_line_of_a_server_is_found_after_many_empty_lines() -> None:
    assert reading.line_of("\n" * 500_000 + '[mcp_servers.x]\ncommand = "y"\n', "x") == 500_001


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = " + "[" * 100_000, "The file cannot be read: it is nested more than 72 levels deep"),
        ("a." * 20_000 + "b = 1", "The file cannot be read: a key has more than 16 parts"),
        ("x = " + "1" * 5_000, "This is not TOML: Exceeds the limit"),
    ],
)
def test_a_toml_file_that_python_cannot_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(errors.Invalid, match=reason):
        reading.read(text, is_toml=True)


@pytest.mark.parametrize("seconds", [10**400, "0x" + "f" * 1_000])
def test_a_time_limit_has_the_maximum_however_large_it_is(seconds: int | str) -> None:
    text = f'[mcp_servers.x]\ncommand = "y"\ntool_timeout_sec = {seconds}\n'
    [server] = importing.preview(text, is_toml=True).servers
    assert server.connection["timeout"] == connections.MAX_TIMEOUT


def test_a_time_limit_that_is_not_finite_is_left_out() -> None:
    text = '[mcp_servers.x]\ncommand = "y"\ntool_timeout_sec = inf\n'
    [server] = importing.preview(text, is_toml=True).servers
    assert "timeout" not in server.connection


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"x": {"type": "sse", "url": "https://example.com/sse"}}},
        {"mcpServers": {"x": {"url": "https://example.com/sse"}}},
        {"mcpServers": {"x": {"command": "npx", "args": ["mcp-remote", "https://example.com/sse"]}}},
        {"name": "a/x", "remotes": [{"type": "sse", "url": "https://example.com/sse"}]},
    ],
)
def test_a_server_over_http_sse_is_imported_by_its_address(document: Any) -> None:
    [server] = importing.preview(json.dumps(document)).servers
    assert (server.problem, server.connection) == ("", {"url": "https://example.com/sse"})


def test_a_server_with_both_transports_is_imported_with_the_newer_one() -> None:
    remotes = [
        {"type": "sse", "url": "https://example.com/sse"},
        {"type": "streamable-http", "url": "https://example.com/mcp"},
    ]
    [server] = importing.preview(json.dumps({"name": "a/x", "remotes": remotes})).servers
    assert server.connection == {"url": "https://example.com/mcp"}


def test_servers_can_be_a_list() -> None:
    preview = importing.preview(json.dumps({"mcpServers": [{"name": "one", "command": "a"}]}))
    assert [server.name for server in preview.servers] == ["one"]


def test_a_changed_server_name_is_shown_beside_the_name_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mcp.json").write_text(
        '{"mcpServers": {"my server": {"command": "x", "env": {"A_KEY": "SECRET01"}}}}'
    )
    call_command("mcp", "import", str(tmp_path / "mcp.json"), "--dry-run")
    printed = capsys.readouterr().out
    assert printed.startswith("my_server (in the file: my server): x\n")
    # A dry run also lists the names of the variables.
    assert "their values are not stored:\n  A_KEY\nNothing was stored.\n" in printed


def test_an_error_while_storing_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    preview = importing.preview((FILES / "zed_settings.json").read_text())
    preview.servers[1].connection["command"] = "ignored\x00"
    with pytest.raises(errors.Invalid):
        importing.store(upstream_servers.SYSTEM, preview)
    snapshots.forget()
    assert stored_connections() == {}


def test_a_server_that_exists_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("mcp", "import", str(FILES / "mcp.json"), "--only", "sentry")
    with pytest.raises(CommandError, match="line 3, sentry: There is a server or plugin sentry already"):
        call_command("mcp", "import", str(FILES / "mcp.json"))
    assert [*stored_connections()] == ["sentry"]
    call_command("mcp", "import", str(FILES / "mcp.json"), "--only", "postgres")
    assert [*stored_connections()] == ["sentry", "postgres"]


@pytest.mark.parametrize(
    "off",
    [
        {"disabled": True},
        {"disabled": "true"},
        {"enabled": False},
        {"enabled": "no"},
        {"isActive": False},
        {"is_active": 0},
        {"active": False},
        {"enabled": True, "disabled": True},
        {"status": "disabled"},
    ],
)
def test_a_server_that_is_off_arrives_off_in_every_spelling(off: dict[str, Any]) -> None:
    servers = {
        "on": {"url": "https://a.example/mcp", "enabled": True},
        "off": {"url": "https://b.example", **off},
    }
    preview = importing.preview(json.dumps({"mcpServers": servers}))

    importing.store(upstream_servers.SYSTEM, preview)

    assert {server.plugin.name: server.plugin.active for server in upstream_servers.servers()} == {
        "on": True,
        "off": False,
    }
    assert [server.unused for server in preview.servers] == [(), ()]


@pytest.mark.parametrize(
    "beside",
    [
        {"mcp": {"excluded": ["b"]}},
        {"mcp": {"allowed": ["a"]}},
        {"disabledMcpServers": ["b"]},
        {"disabledMcpjsonServers": ["b"]},
    ],
)
def test_a_list_of_servers_that_are_off_counts_beside_them(beside: dict[str, Any]) -> None:
    servers = {name: {"url": f"https://{name}.example/mcp"} for name in "ab"}
    preview = importing.preview(json.dumps({"mcpServers": servers, **beside}))

    assert (preview.off, preview.unused) == (("b",), ())


def test_what_is_off_is_neither_hidden_nor_refreshed(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("mcp", "import", str(FILES / "windsurf_mcp_config.json"))

    printed = capsys.readouterr().out
    assert "It is off in the file, and arrives off." in printed
    assert "off-here" not in printed.partition("mcp refresh")[2]


def test_every_key_that_is_not_taken_over_is_named_without_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {
        "$schema": "Zwei9",
        "editor": {"fontSize": "Zwei9"},
        "mcp": {
            "inputs": ["Zwei9"],
            "servers": {
                "_comment": "Zwei9",
                "x": {
                    "url": "https://x.example/mcp",
                    "oauth": {"a": "Zwei9"},
                    "transport": {"retry": "Zwei9"},
                },
            },
        },
    }
    (tmp_path / "settings.json").write_text(json.dumps(document))
    call_command("mcp", "import", str(tmp_path / "settings.json"), "--dry-run")

    printed = capsys.readouterr().out
    assert "Not taken over: oauth, transport.retry." in printed
    assert "from the file: $schema, editor, mcp.inputs, mcp.servers._comment." in printed
    assert "Zwei9" not in printed


def test_null_is_read_as_absent_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "mcpServers": {
            "gone": None,
            "web": {"url": "https://x.example/mcp", "headers": {"X-Team": None}, "timeout": None},
            "x": {"command": "node", "args": ["--port", 3000, None, "a"], "env": {"A": None, "B": "c"}},
        }
    }
    (tmp_path / "mcp.json").write_text(json.dumps(document))
    call_command("mcp", "import", str(tmp_path / "mcp.json"))

    printed = capsys.readouterr().out
    connection = stored_connections()["x"]
    assert (connection.args, dict(connection.env)) == (("--port", "3000", "a"), {"B": "c"})
    assert "args[2], env.A are null" in printed
    assert "headers.X-Team is null" in printed
    assert "from the file: mcpServers.gone." in printed


def test_a_key_is_named_without_what_is_hidden_or_secret_in_it() -> None:
    secret = "ghp_" + "a1B2" * 9
    server = converted({"url": "https://x.example/mcp", f"a\u202e{secret}": 1})

    assert server.unused == ("a[U+202E][withheld]",)


def test_an_unreadable_file_is_reported_by_name(tmp_path: Path) -> None:
    missing: Any = tmp_path / "missing.json"
    with pytest.raises(CommandError, match=r"missing\.json cannot be read: No such file"):
        call_command("mcp", "import", str(missing))


def converted(server: dict[str, Any], **document: Any) -> importing.Converted:
    [result] = importing.examine(json.dumps({"mcpServers": {"x": server}, **document})).servers
    return result


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


@pytest.mark.parametrize(
    ("lists", "rejected", "all_but"),
    [
        # Gemini CLI, Codex, Kiro, Copilot CLI, LiteLLM, Goose.
        ({"includeTools": ["read"], "excludeTools": ["drop"]}, ["drop"], ["read"]),
        ({"enabled_tools": ["read"], "disabled_tools": ["drop"]}, ["drop"], ["read"]),
        ({"disabledTools": ["drop"]}, ["drop"], []),
        ({"tools": ["read"]}, [], ["read"]),
        ({"tools": ["*"]}, [], []),
        ({"tools": "read, list"}, [], ["read", "list"]),
        ({"allowed_tools": ["read"], "disallowed_tools": ["drop"]}, ["drop"], ["read"]),
        ({"available_tools": ["read"]}, [], ["read"]),
        ({"available_tools": []}, [], []),
        # A list of no tool leaves none.
        ({"enabled_tools": []}, ["*"], []),
        ({"includeTools": ["a", "b"], "allowed_tools": ["b"]}, [], ["b"]),
        # MCPHub, and other switches.
        (
            {"tools": {"x-drop": {"enabled": False}, "x-read": {"enabled": True}}},
            ["x-drop", "drop"],
            [],
        ),
        ({"tools": {"x::drop": {"enabled": False}}}, ["x::drop", ":drop", "drop"], []),
        ({"tools": {"drop": False, "read": True}}, ["drop"], []),
        ({"tools": {"drop": "deny"}}, ["drop"], []),
        ({"tools": {"*": False, "read": True}}, [], ["read"]),
        # Lists in an object.
        ({"tools": {"include": ["read"], "exclude": ["drop"]}}, ["drop"], ["read"]),
        ({"toolFilter": {"mode": "block", "list": ["drop"]}}, ["drop"], []),
        ({"options": {"toolFilter": {"mode": "allow", "list": ["read"]}}}, [], ["read"]),
        ({"tools": [{"name": "read", "description": "of a manifest"}]}, [], []),
    ],
)
def test_the_tools_that_a_user_left_out_are_rejected(
    lists: dict[str, Any], rejected: list[str], all_but: list[str]
) -> None:
    server = converted({"url": "https://x.example/mcp", **lists})

    assert (server.reject_tools, server.reject_all_but) == (rejected, all_but)
    assert server.unused == (("tools",) if "manifest" in str(lists) else ())


@pytest.mark.parametrize(
    ("beside", "rejected", "all_but", "unused"),
    [
        ({"tools": {"x_drop": False, "bash": False}}, ["drop"], [], ("tools.bash",)),
        ({"tools": {"x_*": False}}, ["*"], [], ()),
        ({"tools": {"x_*": False, "x_read": True}}, [], ["read"], ()),
        ({"tools": {"*_drop": False}}, ["*_drop", "drop"], [], ()),
        ({"permission": {"x_drop*": "deny", "x_write": "ask"}}, ["drop*"], [], ("permission.x_write",)),
        ({"permissions": {"deny": ["mcp__x__drop", "mcp__other__a"]}}, ["drop"], [], ()),
        ({"permissions": {"deny": ["mcp__x", "Bash(rm)"]}}, ["*"], [], ("permissions",)),
    ],
)
def test_rules_beside_the_servers_count(
    beside: dict[str, Any], rejected: list[str], all_but: list[str], unused: tuple[str, ...]
) -> None:
    document = {"mcp": {"x": {"type": "remote", "url": "https://x.example/mcp"}}, **beside}
    preview = importing.preview(json.dumps(document))
    [server] = preview.servers

    assert (server.reject_tools, server.reject_all_but, preview.unused) == (rejected, all_but, unused)


def test_an_approval_without_asking_is_named_and_approves_nothing() -> None:
    for key in ("autoApprove", "alwaysAllow", "trust"):
        server = converted({"url": "https://x.example/mcp", key: ["read"]})
        assert (server.unused, {*server.entry}) == ((key,), {"upstream"})


def test_the_preview_counts_what_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = {"includeTools": ["read", "list"], "excludeTools": ["drop"]}
    server = {"url": "https://x.example/mcp", **lists}
    (tmp_path / "settings.json").write_text(json.dumps({"mcpServers": {"x": server}}))

    call_command("mcp", "import", str(tmp_path / "settings.json"))

    printed = capsys.readouterr().out
    assert "All tools but 2 arrive rejected. Not rejected: read, list." in printed
    assert "1 tool arrives rejected: drop." in printed
    plugin = snapshots.catalog().plugins["x"]
    assert (plugin.reject_tools, plugin.reject_all_but) == (("drop",), ("read", "list"))


def read(text: str | bytes) -> importing.Preview:
    if isinstance(text, bytes):
        text = reading.text_of(io.BytesIO(text))
    return importing.examine(text)


URL = "https://x.example/mcp"
JSON = json.dumps({"mcpServers": {"x": {"url": URL}}})
ONE_SERVER: dict[str, str | bytes] = {
    "comments of all kinds": f'// a\n/* b */ # c\n{{"mcpServers": {{"x": {{"url": "{URL}"}}, /* d */ }}, # e\n}}',
    "JSON5": "{mcpServers: {'x': {url: 'https://x.example/mcp',},},}",
    "a single quote in JSON5": "{mcpServers: {x: {description: 'it\\'s \"x\"', url: 'https://x.example/mcp'}}}",
    "curly quotes": "{“mcpServers”: {“x”: {“url”: “https://x.example/mcp”}}}",
    "a fragment of servers": '"x": {"url": "https://x.example/mcp"},\n',
    "a fragment with its section": '"mcpServers": {"x": {"url": "https://x.example/mcp"}}',
    "a fragment in JSON5": "'x': {url: 'https://x.example/mcp'}",
    "words before an object": 'Add this:\n{"mcpServers": {"x": {"url": "https://x.example/mcp"}}}\nDone.',
    "a README": f'# X\n\n```sh\nnpx x\n```\n\n```json\n{{"mcpServers": {{"x": {{"url": "{URL}"}}}}}}\n```\n',
    "a README with a fragment": f'Add:\n\n  ~~~~jsonc\n"x": {{"url": "{URL}"}}\n  ~~~~',
    "a README with TOML": f'Codex:\n```toml\n[mcp_servers.x]\nurl = "{URL}"\n```',
    "TOML": f'# a\nmodel = "m"\n[mcp_servers.x]\nurl = "{URL}"',
    "TOML with a BOM": f'\ufeff[mcp_servers.x]\r\nurl = "{URL}"\r\n'.encode(),
    "a profile in TOML": f'[profiles.work.mcp_servers.x]\nurl = "{URL}"',
    "UTF-16": JSON.encode("utf-16"),
    "UTF-16 without a BOM": JSON.encode("utf-16-le"),
    "Windows-1252": JSON.replace("{", '{"_comment": "Büro", ', 1).encode("cp1252"),
    "YAML of LibreChat": f"mcpServers:\n  x:\n    type: streamable-http\n    url: {URL}\n",
    "YAML of Continue": f"name: a\nmcpServers:\n  - name: x\n    url: {URL}\n",
    "YAML of Goose": f"extensions:\n  x:\n    type: streamable_http\n    uri: {URL}\n  developer: {{type: builtin}}\n",
    "YAML of LiteLLM": f"mcp_servers:\n  x: {{url: '{URL}', transport: http}}\n",
    "YAML with an alias": f"a: &a\n  url: {URL}\nmcpServers:\n  x: *a\n",
    "a catalog": f"registry:\n  x:\n    type: remote\n    remote: {{transport_type: streamable-http, url: '{URL}'}}\n",
    "a server without a section": f'{{"name": "x", "url": "{URL}"}}',
    "servers without a section": f'{{"x": {{"url": "{URL}"}}}}',
    "a list of servers": f'[{{"name": "x", "url": "{URL}"}}]',
    "a dotted section": f'{{"mcp.servers": {{"x": {{"url": "{URL}"}}}}}}',
    "a section deep in a file": json.dumps(
        {"customizations": {"vscode": {"mcp": {"servers": {"x": {"url": URL}}}}}}
    ),
    "a project": f'{{"projects": {{"/a": {{"mcpServers": {{"x": {{"url": "{URL}"}}}}}}}}}}',
    "projects with the same server": json.dumps(
        {"projects": {path: {"mcpServers": {"x": {"url": URL}}} for path in ("/a", "/b")}}
    ),
    "a list of the registry": json.dumps(
        {"servers": [{"server": {"name": "io.x/x", "remotes": [{"type": "streamable-http", "url": URL}]}}]}
    ),
    "an entry of the registry with SSE": json.dumps(
        {"name": "io.x/x", "remotes": [{"type": "sse", "url": URL}]}
    ),
    "an object for the transport": f'{{"mcpServers": {{"x": {{"transport": {{"type": "http", "url": "{URL}"}}}}}}}}',
}


@pytest.mark.parametrize("name", ONE_SERVER)
def test_a_server_is_found_however_the_file_is_written(name: str) -> None:
    preview = read(ONE_SERVER[name])

    assert [(server.name, server.connection, server.problem) for server in preview.servers] == [
        ("x", {"url": URL}, "")
    ]


def bundle(manifest: Any, **others: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in others.items():
            archive.writestr(name, content)
        if manifest is not None:
            archive.writestr(
                "manifest.json", manifest if isinstance(manifest, bytes) else json.dumps(manifest)
            )
    return file.getvalue()


MANIFEST: dict[str, Any] = {
    "manifest_version": "0.3",
    "name": "x",
    "display_name": "The X",
    "server": {
        "type": "python",
        "mcp_config": {
            "command": "uvx",
            "args": ["x-mcp", "--mode=${user_config.mode}"],
            "env": {"X_KEY": "${user_config.api_key}", "LEVEL": "${user_config.level}"},
        },
    },
    "tools": [{"name": "search"}],
    "user_config": {
        "api_key": {"type": "string", "sensitive": True, "default": "Zwei0tier9blau"},
        "mode": {"type": "string", "default": "fast"},
        "level": {"type": "number", "default": 2},
    },
}


def test_a_bundle_is_imported_with_a_variable_for_each_setting() -> None:
    [server] = read(bundle(MANIFEST, **{"server.py": b"pass"})).servers

    assert (server.problem, server.title) == ("", "The X")
    assert server.connection == {
        "command": "uvx",
        "args": ["x-mcp", "--mode=${MODE:-fast}"],
        "env": {"X_KEY": "${API_KEY}", "LEVEL": "${LEVEL:-2}"},
    }
    assert (server.variables, server.reject_all_but) == (["API_KEY"], [])
    assert "ier9blau" not in str(server)
    assert "tools" in server.unused


def test_a_bundle_that_needs_its_folder_says_so() -> None:
    manifest = {**MANIFEST, "server": {"mcp_config": {"command": "node", "args": ["${__dirname}/x.js"]}}}
    [server] = read(bundle(manifest)).servers

    assert "It uses ${__dirname}, the directory of its file" in server.problem


@pytest.mark.parametrize(
    ("place", "variable"),
    [
        ("manifest.json", "__dirname"),
        ("gemini-extension.json", "extensionPath"),
        (".claude-plugin/plugin.json", "CLAUDE_PLUGIN_ROOT"),
    ],
)
def test_what_is_beside_a_file_is_found_where_the_file_is(tmp_path: Path, place: str, variable: str) -> None:
    folder = tmp_path / "a ${b}"
    (folder / place).parent.mkdir(parents=True)
    server = {"command": "node", "args": [f"${{{variable}}}/x.js"], "cwd": f"${{{variable}}}"}
    document = {"name": "x", "mcpServers": {"x": server}}
    if place == "manifest.json":
        document = {**MANIFEST, "server": {"mcp_config": server}}
    (folder / place).write_text(json.dumps(document))
    call_command("mcp", "import", str(folder / place))

    [stored] = stored_connections().values()
    filled = [variables.fill(text, {})[0] for text in (*stored.args, stored.cwd)]
    assert filled == [f"{folder}/x.js", str(folder)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bundle(None, a=b"x"), "without manifest.json"),
        (bundle(b"\xff\xfe"), "is not UTF-8"),
        (bundle(b" " * (reading.MAX_BYTES + 1)), "more than 1,000,000 characters"),
        (bundle(MANIFEST)[:-30], "cannot be read"),
        (bundle(MANIFEST, **{f"{number:0250}": b"" for number in range(7_000)}), "too many files"),
        (b"x" * (reading.MAX_BYTES + 1), "more than 1,000,000 characters"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"\x81\x8d", "is not UTF-8"),
    ],
    ids=["other", "bytes", "bomb", "cut", "directory", "long", "odd", "binary"],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(errors.Invalid, match=reason):
        read(content)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in itertools.pairwise("abcdefgh")),
        "x: " + "[" * 5_000,
        "\n".join(f"k{number}: 1" for number in range(30_000)),
        "mcpServers: {x: {url: !!python/object/apply:os.system [ls]}}",
    ],
    ids=["aliases", "depth", "keys", "objects"],
)
def test_yaml_that_grows_or_builds_objects_is_refused(text: str) -> None:
    with pytest.raises(errors.Invalid, match=r"cannot be read|is not YAML"):
        read(text)


@pytest.mark.parametrize(
    "text",
    ["{" + "a" * 900_000, "{" + "a " * 400_000, "```\n" * 200_000, "'" * 900_000, "#" * 900_000],
    ids=["key", "keys", "fences", "quotes", "comment"],
)
def test_each_place_of_an_odd_text_is_read_only_once(text: str) -> None:
    with pytest.raises(errors.Invalid):
        read(text)


def test_only_the_first_block_of_code_with_servers_is_read() -> None:
    blocks = [f'```json\n{{"mcpServers": {{"{name}": {{"url": "{URL}"}}}}}}\n```' for name in ("one", "two")]
    preview = read("Text\n" + "\n".join(blocks))

    assert [server.name for server in preview.servers] == ["one"]
    assert preview.notes == ("Only the first of 2 blocks of code with servers is read.",)


def test_a_name_without_ascii_letters_gets_a_hash_and_keeps_its_title() -> None:
    servers = {name: {"url": URL} for name in ("数据库", "日历", "Büro")}
    preview = importing.examine(json.dumps({"mcpServers": servers}))

    names = [server.name for server in preview.servers]
    assert [server.title for server in preview.servers] == ["数据库", "日历", "Büro"]
    assert len({*names}) == 3
    assert [re.sub("[0-9a-f]{6}$", "", name) for name in names[:2]] == ["server_", "server_"]
    assert not any(server.problem for server in preview.servers)


@pytest.mark.parametrize(
    ("server", "connection", "note"),
    [
        (
            {"command": "npx -y 'a b' --stdio"},
            {"command": "npx", "args": ["-y", "a b", "--stdio"]},
            "Its command was a whole line",
        ),
        ({"command": "npx -y", "args": ["a"]}, {"command": "npx", "args": ["-y", "a"]}, "a whole line"),
        ({"command": "npx", "args": "-y a"}, {"command": "npx", "args": ["-y", "a"]}, "were one text"),
        (
            {"command": "/opt/My App/x", "args": ["a"]},
            {"command": "/opt/My App/x", "args": ["a"]},
            "",
        ),
        (
            {"command": "C:\\Program Files\\x.exe"},
            {"command": "C:\\Program Files\\x.exe"},
            "",
        ),
        ({"command": "x", "cwd": "~/y"}, {"command": "x", "cwd": "${HOME}/y"}, "~ in its cwd"),
        (
            {"image": "acme/x:1", "env": [{"name": "MODE", "value": "a"}]},
            {
                "command": "docker",
                "args": ["run", "-i", "--rm", "-e", "MODE", "acme/x:1"],
                "env": {"MODE": "a"},
            },
            "",
        ),
        ({"cmd": "x", "env_keys": ["A_KEY"]}, {"command": "x", "env": {"A_KEY": "${A_KEY}"}}, ""),
    ],
)
def test_what_would_not_run_as_written_is_changed_with_a_note(
    server: dict[str, Any], connection: dict[str, Any], note: str
) -> None:
    result = converted(server)

    assert (result.connection, result.problem) == (connection, "")
    assert note in " ".join(result.notes)
    assert bool(note) == bool(result.notes)


def test_of_a_command_and_a_url_the_kind_decides_and_the_other_is_named() -> None:
    both = {"command": "npx", "args": ["x"], "url": URL}

    of_url, of_command = converted(both), converted({**both, "type": "stdio"})

    assert (of_url.connection, of_url.unused) == ({"url": URL}, ("command", "args"))
    assert (of_command.connection, of_command.unused) == ({"command": "npx", "args": ["x"]}, ("url",))
