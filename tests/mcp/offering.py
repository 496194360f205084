"""Upstream servers with prompts and resources, and a client of each era to which these are granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import fast_fixtures
from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint
from tests.plugins.upstream import providing, scripting, serving
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.mcp import protocol
from toolbelt.runtime import masking, plugins
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import snapshots

POLICY = "toolbelt://policy"
README, PIXEL, USER = "note://readme", "note://pixel", "db://users/{user_id}"
MEMBERS = (
    "kb__prompt_summarize",
    "kb__resource_readme",
    "kb__resource_pixel",
    "kb__template_user",
    "kb__announce",
    "kb__touch",
)
# The answers of a scripted server.
ANSWERS: dict[str, Any] = {
    "prompts/list": {"prompts": [{"name": "sum"}]},
    "resources/list": {"resources": [{"uri": "note://a", "name": "a"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "n"}]},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
    "completion/complete": {"completion": {"values": ["x"]}},
}


def add_server(connection: dict[str, Any], members: tuple[str, ...], name: str = "kb") -> None:
    configured.add(SETUP, name, connection, trusted=True)
    refresh(name)
    toolkit = {"key": f"{name}_notes", "members": list(members)}
    belts.import_(SETUP, {"toolkits": [toolkit]})
    switches.flip(SETUP.replace(confirm=True), "ada", f"{name}_notes", True)


def refresh(name: str) -> None:
    def record(server: str, answer: server_lists.ServerListing) -> configured.RecordedTools:
        assert not answer.error
        return configured.record(SETUP, server, answer)

    server_lists.refresh([name], record)


@contextmanager
def scripted(directory: Path, belt: Mapping[str, Any], **about: Any) -> Iterator[scripting.Script]:
    """Yield a scripted server added as ``files``, along with the rest of a configuration."""
    script = scripting.Script(directory)

    def add() -> None:
        configured.add(SETUP, "files", script.connection, trusted=True, **about)
        refresh("files")
        belts.import_(SETUP, belt)

    masking.forget()
    fast_fixtures.stored(f"files at {directory}, {about}, {belt}", add)
    yield script
    masking.forget()
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def cleared(transactional_db: None) -> Iterator[None]:
    masking.forget()
    belts.import_(SETUP, {"agents": [{"key": "ada"}]})
    yield
    masking.forget()
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def directory(cleared: None, tmp_path: Path) -> Iterator[Path]:
    """Grant ada all that a real server offers, and yield the directory where it logs its requests."""
    with serving.running(providing.made(tmp_path).streamable_http_app()) as address:
        add_server({"url": address, "sharing": "shared"}, MEMBERS)
        yield tmp_path
        plugins.stop()


@pytest.fixture
def script(cleared: None, tmp_path: Path) -> scripting.Script:
    """Grant ada what a scripted server of the first era offers."""
    script = scripting.Script(tmp_path)
    script.offers(ANSWERS)
    add_server(
        {**script.connection, "sharing": "shared"},
        ("kb__prompt_sum", "kb__resource_a", "kb__template_n", "kb__notify"),
    )
    return script


@pytest.fixture(params=[OLD, NEW])
def client(request: Any, cleared: None) -> Client:
    token = tokens.issue(SETUP, agent="ada").text
    return Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=request.param)


def not_found(client: Client, uri: str = "") -> tuple[int, int]:
    if client.version == NEW:
        return 400, protocol.INVALID_PARAMS
    return 200, protocol.RESOURCE_NOT_FOUND if uri else protocol.INVALID_PARAMS
