"""Tests that the documented HTTP clients wait as long as a call may take. By default, httpx waits for 5 seconds."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2

from tests.docs import pages
from toolbelt import conf
from toolbelt.web import connect

REQUESTS = {"AsyncClient", "Client", "delete", "get", "patch", "post", "put", "request", "stream"}


def programs() -> Iterator[tuple[str, ast.Module]]:
    """Yield the programs of each page, as one, and the program of an agent's Connect tab."""
    for page in pages.every():
        program = ast.Module([], [])
        for block in pages.blocks(page, "py", "python", "text"):
            with contextlib.suppress(SyntaxError):
                program.body += ast.parse(block).body
        yield pages.name(page), program
    for way in connect.languages("https://toolbelt.example/", "clock"):
        with contextlib.suppress(SyntaxError):
            yield way.name, ast.parse(way.text)


def seconds(program: ast.Module) -> Iterator[float | None]:
    """Yield how long each HTTP client of a program waits for an answer. Clients with a fake transport do not count."""
    known: dict[str, Any] = {"httpx": httpx, "httpx2": httpx2}

    def evaluate(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "page", "eval"), known)  # noqa: S307 (our own pages)

    for node in ast.walk(program):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.Call() as value):
                with contextlib.suppress(Exception):
                    known[name] = evaluate(value)
    for node in ast.walk(program):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="httpx" | "httpx2"), attr=name)):
                options = {keyword.arg: keyword.value for keyword in node.keywords}
                if name in REQUESTS and "transport" not in options:
                    limit = evaluate(options["timeout"]) if "timeout" in options else 5
                    yield httpx.Timeout(limit.read if hasattr(limit, "read") else limit).read


def test_documented_clients_wait_as_long_as_a_call_may_take() -> None:
    limits = {page: [*seconds(program)] for page, program in programs()}
    assert {page for page, found in limits.items() if found} == {
        "python",
        "docs/how-to/ask-over-http.md",
        "docs/how-to/change-over-http.md",
        "docs/how-to/connect-an-mcp-client.md",
        "docs/how-to/give-a-surface-to-a-provider.md",
        "docs/how-to/use-with-frameworks.md",
    }
    assert all(limit and limit > conf.CALL_SECONDS for found in limits.values() for limit in found), limits
