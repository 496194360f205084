"""Tests that a server's connection is validated and cannot contain secrets."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import connections, schema

URL = "https://tools.example/mcp"


def problems(**given: Any) -> list[str]:
    return [f"{'.'.join(place)}: {message}" for place, message in connections.problems(given)]


@pytest.mark.parametrize(
    "valid",
    [
        {"command": "mcp-server-git", "args": ["--repository", "."], "cwd": "/srv", "timeout": 600},
        {
            "command": "x",
            "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "MAX_TOKENS": "100000", "TOKEN_FILE": "/run/t"},
        },
        {"command": "x", "env": {"TOKENIZERS_PARALLELISM": "false", "AUTH": "on"}},
        {"url": URL, "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "search"}},
        {
            "url": URL,
            "headers": {"User-Agent": "toolbelt of the search team", "Accept-Language": "de, en;q=0.5"},
        },
        {
            "url": URL,
            "headers": {"X-Key": "${KEY}", "X-Signature": "v1=${SIGNATURE}", "X-Max-Tokens": "100000"},
        },
        {"url": URL, "headers": {"X-MCP-Toolsets": "repos,issues,pull_requests", "X-MCP-Readonly": "true"}},
        {"url": "http://127.0.0.1:8000/mcp"},
        {"url": "https://tools.example/${KEY}/mcp"},
        {"url": "https://tools.example/mcp?api_key=${KEY}&max_tokens=100000&team=search-and-find"},
        {
            "command": "x",
            "args": ["--token-file", "/run/token", "--max-tokens=100000", "--auth", "--verbose"],
        },
        {"command": "x", "args": ["--token", "${TOKEN}", "--api-key=${KEY}", "--token=off"]},
        {"command": "x", "args": ["--header", "Authorization: Bearer ${TOKEN}", "--env=KEY=${KEY}"]},
        {"command": "x", "args": [URL + "?api_key=${KEY}", "--where=a?b=c", "12:30:00", "auth:off"]},
        {
            "command": "x",
            "env": {"DATABASE_URL": "postgres://me@db/x", "OTHER_URL": "postgres://me:${PW}@db/x"},
        },
        {"command": "x", "env": {"GIT_AUTHOR_NAME": "Ada Lovelace", "GIT_AUTHOR_EMAIL": "ada@example.com"}},
        {"url": URL, "sign_in": "shared", "scopes": "repo read:org"},
        {"url": URL, "sign_in": "shared", "client_id": "Iv23li", "client_secret": "${GITHUB_SECRET}"},
        {"url": URL, "sign_in": "shared", "client_id": "Iv23li", "issuer": "https://github.com/login/oauth"},
    ],
)
def test_a_valid_connection_without_secrets_has_no_problems(valid: dict[str, Any]) -> None:
    assert problems(**valid) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ": A server needs either a 'command' or a 'url'"),
        ({"command": "x", "url": URL}, ": A server needs either a 'command' or a 'url'"),
        ({"command": "x", "headers": {"A": "b"}}, "headers: 'headers' belongs to a 'url'"),
        ({"url": URL, "args": ["x"]}, "args: 'args' belongs to a 'command'"),
        ({"url": URL, "timeout": 0}, "timeout: The timeout must be 1 to 600 seconds"),
        ({"url": "ftp://tools.example"}, "url: A URL begins with https://"),
        ({"url": "https://"}, "url: A URL begins with https://"),
        ({"url": "https://tools.example:99999/"}, "url: This is not a URL"),
        ({"url": "https://tools.example/a b"}, "url: The URL contains a space"),
        ({"url": "https://me:secret@tools.example/"}, "url: The URL contains a user name or a password"),
        ({"url": "https://${HOST}/mcp"}, "url: The host of a URL cannot contain a variable"),
        ({"url": "http://169.254.169.254/latest"}, "url: 169.254.169.254 is a cloud platform's own address"),
        (
            {"url": "http://[::ffff:169.254.169.254]/"},
            "url: ::ffff:169.254.169.254 is a cloud platform's own",
        ),
        (
            {"url": URL, "headers": {"Authorization": "Bearer abc"}},
            "headers.Authorization: This looks like a secret",
        ),
        ({"url": URL, "headers": {"X-Api-Key": "0b7f6c2d9e"}}, "headers.X-Api-Key: This looks like a secret"),
        ({"url": URL, "headers": {"X-Team": "ghp_" + "a" * 36}}, "headers.X-Team: This looks like a secret"),
        (
            {"url": URL, "headers": {"Authorization": "${A} sk-" + "a" * 20}},
            "headers.Authorization: This looks like a secret",
        ),
        (
            {"url": URL, "headers": {"Authorization": "Bearer $${A}"}},
            "headers.Authorization: This looks like",
        ),
        ({"url": URL, "headers": {"X-Key": "0b7f6c2d9e"}}, "headers.X-Key: This looks like a secret"),
        ({"url": URL, "headers": {"X-Key": "abc1234"}}, "headers.X-Key: This looks like a secret"),
        ({"url": URL, "headers": {"X-Token": "1234"}}, "headers.X-Token: This looks like a secret"),
        ({"url": URL, "headers": {"X-Session": "0b7f6"}}, "headers.X-Session: This looks like a secret"),
        ({"url": URL, "headers": {"X-Hub": "0b7f6c2d9e"}}, "headers.X-Hub: This may be a secret"),
        ({"url": URL, "headers": {"X-Team": "search and find"}}, "headers.X-Team: This may be a secret"),
        (
            {"url": URL, "headers": {"User-Agent": "ghp_" + "a" * 36}},
            "headers.User-Agent: This looks like a secret",
        ),
        ({"url": URL, "headers": {"A b": "c"}}, "headers.A b: 'A b' is not the name of a header"),
        ({"url": URL, "headers": {"A": "b\r\nC: d"}}, "headers.A: 'A' contains a control character"),
        (
            {"command": "x", "env": {"DB_PASSWORD": "correct horse"}},
            "env.DB_PASSWORD: This looks like a secret",
        ),
        ({"command": "x", "env": {"AUTHORIZATION": "correct horse"}}, "env.AUTHORIZATION: This looks like"),
        ({"command": "x", "env": {"A=B": "c"}}, "env.A=B: 'A=B' is not the name of a variable"),
        ({"command": "x\n"}, "command: 'command' contains a control character"),
        ({"command": "x", "args": ["--token", "ghp_" + "a" * 36]}, "args: This looks like a secret"),
        ({"command": "x", "args": ["--token", "0b7f6c2d9e"]}, "args: This looks like a secret"),
        ({"command": "x", "args": ["-v", "--api-key=0b7f6c2d9e"]}, "args: This looks like a secret"),
        (
            {"command": "docker", "args": ["run", "-e", "API_KEY=0b7f6c2d9e"]},
            "args: This looks like a secret",
        ),
        ({"command": "x", "args": ["postgres://me:pw@db/x"]}, "args: This looks like a secret"),
        ({"command": "x", "args": ["--env=API_KEY=0b7f6c2d9e"]}, "args: This looks like a secret"),
        (
            {"command": "x", "args": ["--header", "Authorization: Bearer 0b7f6c2d9e"]},
            "args: This looks like a secret",
        ),
        ({"command": "x", "args": ["--header=X-Auth-Token:0b7f6c2d9e"]}, "args: This looks like a secret"),
        ({"command": "x", "args": [URL + "?api_key=abcdef0123456789"]}, "args: This looks like a secret"),
        (
            {"command": "x", "args": ["--url=" + URL + "?token=abcdef012345"]},
            "args: This looks like a secret",
        ),
        ({"url": URL + "?api_key=abcdef0123456789"}, "url: This looks like a secret"),
        ({"url": URL + "?a=b&Access%5FToken=/abcdef0123"}, "url: This looks like a secret"),
        (
            {"command": "x", "env": {"DATABASE_URL": "postgres://me:pw@db/x"}},
            "env.DATABASE_URL: This looks like a secret",
        ),
        (
            {"url": URL, "headers": {"X-Api-Key": "/abcdef0123"}},
            "headers.X-Api-Key: This looks like a secret",
        ),
    ],
)
def test_an_invalid_connection_or_secret_is_reported_at_its_field(
    given: dict[str, Any], expected: str
) -> None:
    (problem,) = problems(**given)

    assert problem.startswith(expected)


def test_a_connection_lists_the_variables_it_needs() -> None:
    parsed = connections.of(
        {"url": "https://x.example/${KEY}", "headers": {"A": "${TOKEN} ${KEY} $${PLAIN}"}}
    )

    assert parsed is not None
    assert set(parsed.variables()) == {"KEY", "TOKEN"}


def test_an_invalid_stored_connection_reads_as_none() -> None:
    for text in ("", "{}", "null", '{"url": 3}', "not json"):
        assert connections.read(text) is None


def test_invalid_fields_of_a_stored_connection_are_ignored() -> None:
    stored = {"command": "x", "args": ["a", 1], "env": {"A": 1, "B": "b"}, "timeout": True}

    parsed = connections.read(schema.canonical(stored))

    assert parsed == connections.Connection(command="x", args=("a",), env={"B": "b"})


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"headers": {"authorization": "Bearer ${KEY}"}, "sign_in": "shared"}, "sign_in"),
        ({"client_id": "x", "client_secret": "hush"}, "client_secret"),
        ({"client_id": "x", "client_secret": "${KEY:-hush}"}, "client_secret"),
        ({"client_secret": "${KEY}"}, "client_secret"),
        ({"client_id": "x\n"}, "client_id"),
        ({"issuer": "github.com"}, "issuer"),
        ({"issuer": "https://github.com/ x"}, "issuer"),
        ({"scopes": "a  b"}, "scopes"),
        ({"scopes": 'a"'}, "scopes"),
    ],
)
def test_a_sign_in_that_cannot_work_or_has_a_secret_is_refused(given: dict[str, Any], place: str) -> None:
    (problem,) = problems(url=URL, **given)
    assert problem.startswith(f"{place}: ")


def test_a_command_is_not_signed_in_to() -> None:
    assert problems(command="x", sign_in="shared") == ["sign_in: 'sign_in' belongs to a 'url': remove it."]
