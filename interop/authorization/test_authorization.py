"""Tests of signing in to MCP servers behind authorization servers that no one here wrote."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import browsing
import httpx
import kit
import pytest

HERE = Path(__file__).parent
NODE = Path(sys.prefix) / "node"
EXAMPLE = NODE / "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js"
SECONDS = 3


@dataclass
class Server:
    """A running MCP server, under a name in Toolbelt, with the tools that it has there."""

    name: str
    origin: str
    process: subprocess.Popen[bytes]

    def state(self) -> str:
        return str(kit.operator("GET", f"plugins/{self.name}/status")["state"])

    def tool(self, name: str) -> str:
        return f"{self.name}__{name}"

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool as the agent, and return its answer or the refusal."""
        body = {"tool": self.tool(tool), "arguments": arguments}
        headers = {"Authorization": f"Bearer {kit.TOKEN}"}
        url = f"{kit.ADDRESS}/api/v1/agents/{kit.AGENT}/calls"
        answer: dict[str, Any] = httpx.post(url, json=body, headers=headers, timeout=60).json()
        return answer


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def wait_for(what: Any, seconds: float = 30) -> Any:
    """Return the first true result."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "It never came."
        time.sleep(0.1)
    return found


@contextmanager
def serving(command: Sequence[str], host: str, port: int, env: dict[str, str]) -> Iterator[Server]:
    """Run an MCP server, and add it to Toolbelt by its address alone."""
    process = subprocess.Popen(["node", *command], cwd=NODE, env={**os.environ, **env})
    name, origin = f"judge-{uuid.uuid4().hex[:6]}", f"http://{host}:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{origin}/mcp").status_code < 500
        except httpx.TransportError:
            return False

    try:
        wait_for(answers)
        kit.operator(
            "POST", "plugins", {"name": name, "namespace": name, "upstream": {"url": f"{origin}/mcp"}}
        )
        kit.operator("POST", f"plugins/{name}/refresh")
        yield Server(name, origin, process)
    finally:
        process.terminate()
        process.wait()
        kit.operator("PATCH", f"plugins/{name}", {"changes": {"active": False}, "confirm": True})


@pytest.fixture
def provider() -> Iterator[Server]:
    """Run npm oidc-provider, and an MCP server of the official SDK that takes its tokens."""
    port, issuer_port = free_ports(2)
    env = {"PORT": str(port), "ISSUER_PORT": str(issuer_port), "SECONDS": str(SECONDS)}
    # Node finds packages beside the program.
    program = NODE / "provider.mjs"
    program.write_bytes((HERE / "provider.mjs").read_bytes())
    with serving([str(program)], "127.0.0.1", port, env) as server:
        yield server


@pytest.fixture
def example() -> Iterator[Server]:
    """Run the official SDK's example of a server with an authorization server."""
    port, issuer_port = free_ports(2)
    env = {"MCP_PORT": str(port), "MCP_AUTH_PORT": str(issuer_port)}
    with serving([str(EXAMPLE), "--oauth", "--oauth-strict"], "localhost", port, env) as server:
        yield server


@pytest.fixture
def person() -> browsing.Person:
    return browsing.Person.create()


def signed_in(person: browsing.Person, server: Server, *tools: str, account: str = "") -> None:
    """Sign in for all agents, review the tools that then wait, and grant them."""
    assert server.state() == "sign-in-needed"
    answer = person.sign_in(server.name, account)
    assert answer.headers["location"].startswith(f"/plugins/{server.name}/?asked="), answer.headers
    waiting = wait_for(lambda: kit.operator("GET", f"plugins/{server.name}/review")["changes"])
    assert {server.tool(tool) for tool in tools} <= {change["tool"] for change in waiting}
    for tool in tools:
        kit.override(server.tool(tool), True)
    assert server.call(tools[0])["code"] != "ok", "No tool runs before its review."
    kit.approve(server.name)


def refreshes(server: Server) -> dict[str, int]:
    state: dict[str, int] = httpx.get(f"{server.origin}/state").json()
    return state


def test_a_server_behind_oidc_provider_from_its_address_to_its_end(
    provider: Server, person: browsing.Person
) -> None:
    signed_in(person, provider, "whoami", account="mona")
    assert person.pages == ["login", "consent"]
    answer = provider.call("whoami")
    assert answer["content"] == {"result": "mona"}, answer

    # Each expiry costs one refresh token, and each of those is used once.
    for expiry in (1, 2):
        time.sleep(SECONDS + 0.5)
        assert provider.call("whoami")["content"] == {"result": "mona"}
        assert refreshes(provider)["refreshes"] >= expiry
    assert refreshes(provider)["used"] == refreshes(provider)["refreshes"]

    httpx.post(f"{provider.origin}/end").raise_for_status()
    time.sleep(SECONDS + 0.5)
    refused = provider.call("whoami")
    assert (refused["is_error"], refused["code"]) == (True, "tool-unavailable"), refused
    wait_for(lambda: provider.state() == "sign-in-needed")
    before = refreshes(provider)
    provider.call("whoami")
    assert refreshes(provider) == before

    # What was approved and granted is still there.
    person.sign_in(provider.name)
    assert wait_for(lambda: provider.call("whoami").get("content")) == {"result": "mona"}


def test_signing_in_again_and_out_ends_the_grants_at_oidc_provider(
    provider: Server, person: browsing.Person
) -> None:
    signed_in(person, provider, "whoami", account="mona")
    person.sign_in(provider.name, "mona")
    assert wait_for(lambda: provider.call("whoami").get("content")) == {"result": "mona"}
    kit.operator("DELETE", f"plugins/{provider.name}/sign-in")
    assert provider.call("whoami")["code"] == "tool-unavailable"


def test_more_scopes_that_a_call_demands_are_asked_for_by_signing_in_again(
    provider: Server, person: browsing.Person
) -> None:
    signed_in(person, provider, "whoami", "write", account="mona")
    refused = provider.call("write")
    assert (refused["code"], "again" in refused["message"]) == ("tool-unavailable", True), refused
    assert kit.operator("GET", f"plugins/{provider.name}/sign-in")["demanded"] == "notes:write"
    assert provider.call("whoami")["content"] == {"result": "mona"}
    person.sign_in(provider.name)
    assert wait_for(lambda: provider.call("write").get("content")) == {"result": "kept for mona"}
    assert kit.operator("GET", f"plugins/{provider.name}/sign-in")["demanded"] == ""


def test_the_example_of_the_official_sdk(example: Server, person: browsing.Person) -> None:
    signed_in(person, example, "greet")
    answer = example.call("greet", name="Ada")
    assert answer["content"] == {"result": "Hello, Ada!"}, answer
