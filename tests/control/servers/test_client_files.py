"""Tests that servers are imported from files of MCP clients: whole, under review, and as their user left them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.control.servers.imported_files import FILES, URL, converted, everything_stored, stored_connections
from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import importing
from toolbelt.core import connections, errors
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db


def test_a_dry_run_stores_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("mcp", "import", str(FILES / "mcp.json"), "--dry-run")
    assert "sentry: https://mcp.sentry.dev/mcp" in capsys.readouterr().out
    assert stored_connections() == {}


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


def test_an_unreadable_file_is_reported_by_name(tmp_path: Path) -> None:
    missing: Any = tmp_path / "missing.json"
    with pytest.raises(CommandError, match=r"missing\.json cannot be read: No such file"):
        call_command("mcp", "import", str(missing))


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
