"""Tests that a client's file is read however it is written, and refused at a small cost."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.control.servers.imported_files import URL, stored_connections
from toolbelt.control.servers.client_files import importing, reading
from toolbelt.core import errors, variables

pytestmark = pytest.mark.django_db


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


def read(text: str | bytes) -> importing.Preview:
    if isinstance(text, bytes):
        text = reading.text_of(io.BytesIO(text))
    return importing.examine(text)


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
