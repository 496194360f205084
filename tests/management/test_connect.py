"""Tests that `manage.py connect` prints the configuration of an MCP client, or adds it to the client's file."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.api.conftest import SETUP
from toolbelt import locations
from toolbelt.control.agents import agents, mcp_clients
from toolbelt.control.config import belts
from toolbelt.control.servers import running_tools, states
from toolbelt.control.servers.client_files import importing
from toolbelt.management.commands import serve
from toolbelt.store import running_processes

pytestmark = pytest.mark.django_db
URL = "https://toolbelt.example.com"
CLIENT_IDS = [client.id for client in mcp_clients.CLIENTS]


@pytest.fixture(autouse=True)
def ada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLBELT_TOKEN", raising=False)
    belts.import_(SETUP, {"agents": [{"key": "ada"}]})


def connect(client: str, *words: str, url: str = URL) -> str:
    printed = io.StringIO()
    call_command(
        "connect", "ada", "--client", client, "--url", url, *words, stdout=printed, stderr=io.StringIO()
    )
    return printed.getvalue()


@pytest.mark.parametrize("client", CLIENT_IDS)
def test_the_printed_configuration_contains_the_agents_url(client: str) -> None:
    assert f"{URL}/mcp/ada" in connect(client)


@pytest.mark.parametrize("client", CLIENT_IDS)
def test_a_written_file_is_a_valid_client_configuration(client: str, tmp_path: Path) -> None:
    file = tmp_path / f"new/settings{Path(mcp_clients.find(client).file).suffix}"
    assert str(file) in connect(client, "--write", str(file))
    preview = importing.preview(file.read_text(), is_toml=file.suffix == ".toml")
    assert [server.name for server in preview.servers] == [mcp_clients.NAME]
    assert f"{URL}/mcp/ada" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("client", CLIENT_IDS)
def test_writing_again_changes_nothing(client: str, tmp_path: Path) -> None:
    file = tmp_path / f"settings{Path(mcp_clients.find(client).file).suffix}"
    connect(client, "--write", str(file))
    before = file.read_text()
    connect(client, "--write", str(file))
    assert file.read_text() == before


def test_writing_keeps_the_rest_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    existing: dict[str, Any] = {
        "theme": "dark",
        "mcpServers": {"files": {"command": "files", "args": ["/ö"]}},
    }
    file.write_text(json.dumps(existing))
    file.chmod(0o640)
    connect("cursor", "--write", str(file))
    written = json.loads(file.read_text())
    assert written["mcpServers"].pop("toolbelt")["url"] == f"{URL}/mcp/ada?loading=constant"
    assert written == existing
    assert file.stat().st_mode & 0o777 == 0o640


def test_no_draft_stays_if_the_file_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(CommandError, match="cannot be written: Operation not permitted"):
        connect("cursor", "--write", str(tmp_path / "mcp.json"))
    assert [*tmp_path.iterdir()] == []


def test_the_draft_is_written_where_a_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real/mcp.json", tmp_path / "mcp.json"
    link.symlink_to(target)
    directories, replace = [], os.replace

    def note(draft: str, file: Path) -> None:
        directories.append(Path(draft).parent)
        replace(draft, file)

    monkeypatch.setattr("os.replace", note)
    connect("cursor", "--write", str(link))
    # Another directory may be on another disk, to which no file can be moved.
    assert directories == [target.parent]
    assert link.is_symlink()
    assert URL in target.read_text()


def test_inputs_of_vs_code_are_added_once(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    other = {"type": "promptString", "id": "other"}
    file.write_text(json.dumps({"inputs": [other], "servers": {}}))
    connect("vs-code", "--write", str(file))
    connect("vs-code", "--write", str(file), "--replace", url="https://other.example.com")
    assert [item["id"] for item in json.loads(file.read_text())["inputs"]] == ["other", "toolbelt-token"]


CODEX = """# mine
model = "gpt-5"

[mcp_servers.toolbelt]
url = "https://old.example.com/mcp/ada"

[mcp_servers.toolbelt.env]
A = "[x]"

[mcp_servers.files]
command = "files"
"""


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("cursor", "mcp.json", json.dumps({"mcpServers": {"toolbelt": {"url": "https://old.example.com"}}})),
        ("codex", "config.toml", CODEX),
    ],
)
def test_an_existing_server_with_the_same_name_is_only_replaced_on_request(
    tmp_path: Path, client: str, name: str, text: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(CommandError, match=r"was not changed.*--replace"):
        connect(client, "--write", str(file))
    assert file.read_text() == text
    connect(client, "--write", str(file), "--replace")
    assert "old.example.com" not in file.read_text()
    if client == "codex":
        assert file.read_text().startswith('# mine\nmodel = "gpt-5"\n')
        servers = tomllib.loads(file.read_text())["mcp_servers"]
        assert servers["files"] == {"command": "files"}
        assert servers["toolbelt"] == {"url": f"{URL}/mcp/ada", "bearer_token_env_var": "TOOLBELT_TOKEN"}


@pytest.mark.parametrize(
    ("client", "name", "text", "reason"),
    [
        ("cursor", "mcp.json", "// mine\n{}", "not JSON, or has comments"),
        ("cursor", "mcp.json", "[]", "not a JSON object"),
        ("cursor", "mcp.json", '{"mcpServers": []}', "mcpServers has an unexpected form"),
        ("cursor", "mcp.json", "[" * 100_000, "nested too deeply"),
        ("codex", "config.toml", "x = ", "not TOML"),
        ("codex", "config.toml", "x = " + "1" * 5_000, "not TOML"),
        ("codex", "config.toml", "x = " + "[" * 100_000, "nested more than 72 levels deep"),
        ("codex", "config.toml", "a." * 20_000 + "b = 1", "a key has more than 16 parts"),
        (
            "codex",
            "config.toml",
            "mcp_servers = {toolbelt = {url = 'x'}}",
            "a form that cannot be changed here",
        ),
        ("cursor", "mcp.json", "\udcff", "not UTF-8"),
        ("cursor", "mcp.json", '{"theme": "\\ud800"}', "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_unchanged(
    tmp_path: Path, client: str, name: str, text: str, reason: str
) -> None:
    file = tmp_path / name
    file.write_text(text, errors="surrogateescape")
    before = file.read_bytes()
    with pytest.raises(CommandError, match=reason):
        connect(client, "--write", str(file), "--replace")
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_token_stored_in_the_file_is_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Replace YOUR_TOKEN there" in connect("cline", "--write", str(tmp_path / "a.json"))
    monkeypatch.setenv("TOOLBELT_TOKEN", "tb_of_ada")
    assert "YOUR_TOKEN" not in connect("cline", "--write", str(tmp_path / "b.json"))
    assert "Bearer tb_of_ada" in (tmp_path / "b.json").read_text()


def test_an_assumed_address_is_named(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    said = io.StringIO()
    call_command("connect", "ada", "--client", "cursor", stdout=io.StringIO(), stderr=said)
    assert "Assumed address http://127.0.0.1:8000; pass --url for another." in said.getvalue()
    said = io.StringIO()
    call_command("connect", "ada", "--client", "cursor", "--url", URL, stdout=io.StringIO(), stderr=said)
    assert "Assumed" not in said.getvalue()


@pytest.mark.parametrize(
    ("host", "hosts", "address"),
    [
        ("127.0.0.1", ["127.0.0.1", "localhost"], "http://127.0.0.1:8123"),
        ("0.0.0.0", ["localhost", "127.0.0.1"], "http://localhost:8123"),  # noqa: S104
        ("127.0.0.1", ["localhost"], "http://localhost:8123"),
        ("::1", ["localhost", "[::1]"], "http://[::1]:8123"),
    ],
)
def test_the_address_is_that_of_the_server_that_runs(
    host: str, hosts: list[str], address: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOWED_HOSTS = hosts
    monkeypatch.setenv(states.SERVED_AT, serve._address(host, 8123))
    running_tools.report("one", (), problems=())

    assert f"{address}/mcp/ada" in assuming()

    running_tools.report("one", (), problems=())
    running_processes.end("one")
    assert f"http://{hosts[0]}:8000/mcp/ada" in assuming()


def test_the_address_of_the_running_server_is_not_that_of_the_public(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reverse proxy has another address than the server behind it."""
    settings.ALLOWED_HOSTS, settings.INSECURE_HTTP = ["toolbelt.example.com", "localhost"], False
    monkeypatch.setenv(states.SERVED_AT, "http://127.0.0.1:8123")
    running_tools.report("one", (), problems=())
    assert "https://toolbelt.example.com/mcp/ada" in assuming()


def assuming() -> str:
    printed = io.StringIO()
    call_command("connect", "ada", "--client", "cursor", stdout=printed, stderr=io.StringIO())
    return printed.getvalue()


def test_the_next_step_after_writing_works_in_any_directory(tmp_path: Path, settings: Any) -> None:
    settings.ABSOLUTE_COMMAND = "/srv/.venv/bin/python /srv/manage.py"
    printed = connect("cursor", "--write", str(tmp_path / "a.json"))
    assert "  /srv/.venv/bin/python /srv/manage.py token issue --agent ada" in printed


def test_the_address_says_how_a_client_loads_tools_unless_the_agent_or_the_caller_does() -> None:
    assert "/mcp/ada?loading=constant" in connect("cursor")
    assert "?loading" not in connect("claude-code") + connect("codex")
    assert "?loading=dispatch" in connect("cursor", "--loading", "dispatch")
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    assert "?loading" not in connect("cursor")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nobody", "--client", "cursor"), "nobody"),
        (("ada", "--client", "cursor", "--url", "toolbelt.example.com"), "is not an address"),
        (("ada", "--client", "cursor", "--url", "http://["), "is not an address"),
        (("ada", "--client", "editor"), "invalid choice"),
    ],
)
def test_invalid_arguments_are_refused(words: tuple[str, ...], error: str) -> None:
    with pytest.raises(CommandError, match=error):
        call_command("connect", *words, stdout=io.StringIO())


def test_the_guide_lists_each_client_with_its_usual_file() -> None:
    page = (locations.ASSETS / "docs/how-to/connect-an-mcp-client.md").read_text(encoding="utf-8")
    for client in mcp_clients.CLIENTS:
        assert f"| `{client.id}` | `{client.file}` |" in page


def test_a_file_that_holds_a_token_becomes_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLBELT_TOKEN", "tb_sesame")
    file = tmp_path / "mcp-config.json"
    file.write_text("{}")
    file.chmod(0o644)

    printed = connect("copilot-cli", "--write", str(file))

    assert "tb_sesame" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert "now only you can" in printed
    assert "now only you can" not in connect("copilot-cli", "--write", str(file), "--replace")


@pytest.mark.parametrize(("ignored", "is_told"), [("", True), ("mcp-config.json", False)])
def test_a_token_in_a_repository_is_warned_of(tmp_path: Path, ignored: str, is_told: bool) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(ignored)
    file, warned = tmp_path / "mcp-config.json", io.StringIO()

    call_command(
        "connect", "ada", "--client", "copilot-cli", "--url", URL, "--write", str(file),
        stdout=io.StringIO(), stderr=warned,
    )  # fmt: skip

    assert ("is in a git repository" in warned.getvalue()) == is_told


@pytest.mark.parametrize("client", CLIENT_IDS)
def test_two_agents_have_two_names_in_one_file(client: str, tmp_path: Path) -> None:
    belts.import_(SETUP, {"agents": [{"key": "bob"}]})
    file = tmp_path / f"settings{Path(mcp_clients.find(client).file).suffix}"
    connect(client, "--write", str(file))
    words = [
        "connect",
        "bob",
        "--client",
        client,
        "--url",
        URL,
        "--write",
        str(file),
        "--name",
        "toolbelt-bob",
    ]
    call_command(*words, stdout=io.StringIO(), stderr=io.StringIO())
    call_command(*words, stdout=io.StringIO(), stderr=io.StringIO())

    preview = importing.preview(file.read_text(), is_toml=file.suffix == ".toml")
    assert [server.name for server in preview.servers] == ["toolbelt", "toolbelt-bob"]
    assert f"{URL}/mcp/ada" in file.read_text()
    assert f"{URL}/mcp/bob" in file.read_text()


@pytest.mark.parametrize("name", ["", "a b", 'a"', "ü", "a.b", "mcpServers", "servers", "x" * 41])
def test_a_name_that_a_client_cannot_take_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    with pytest.raises(CommandError, match="is not a name for a server"):
        connect("cursor", "--name", name, "--write", str(file))
    assert not file.exists()
