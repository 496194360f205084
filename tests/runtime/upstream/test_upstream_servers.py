"""Tests that published servers and a server over HTTP can be called, each with only its own secrets."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import serving
from tests.runtime import connected
from tests.runtime.connected import stopped as stopped
from tests.runtime.connected import wait_for_news as wait_for_news
from toolbelt.runtime.upstream import status
from toolbelt.store import snapshots

# Another thread writes the unsolicited answers of a connection.
pytestmark = pytest.mark.django_db(transaction=True)


def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "notes.txt").write_text("hello")
    connected.add(
        "git", {"command": str(connected.BIN / "mcp-server-git"), "args": ["--repository", str(tmp_path)]}
    )

    recorded = connected.refresh("git")["git"]
    connected.grant("git__git_status")

    assert "git__git_commit" in recorded.created
    assert "notes.txt" in connected.content("git__git_status", {"repo_path": str(tmp_path)})["result"]
    assert snapshots.catalog().tools["git__git_status"].annotations


def test_the_time_server_returns_a_structured_result() -> None:
    connected.add(
        "time", {"command": str(connected.BIN / "mcp-server-time"), "args": ["--local-timezone", "UTC"]}
    )
    connected.refresh("time")
    connected.grant("time__convert_time")

    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}

    assert "21:00" in json.dumps(connected.content("time__convert_time", arguments))
    assert connected.refusal("time__convert_time", {"time": 12})[0] == "invalid-arguments"


def test_the_fetch_server_fetches_a_page() -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"a page of the test")

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        try:
            options = ["--ignore-robots-txt", "--allow-private-ips"]
            connected.add("fetch", {"command": str(connected.BIN / "mcp-server-fetch"), "args": options})
            recorded = connected.refresh("fetch")["fetch"]
            connected.grant("fetch__fetch")
            fetched = connected.content("fetch__fetch", {"url": f"http://127.0.0.1:{page.server_port}/"})
        finally:
            page.shutdown()

    assert recorded.created == ("fetch__fetch", "fetch__prompt_fetch")
    assert "a page of the test" in json.dumps(fetched)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving.served() as address:
        yield address


def with_token(address: str) -> dict[str, Any]:
    return {"url": address, "headers": {"Authorization": "Bearer ${MCP_TOKEN}"}}


def test_a_server_over_http_receives_its_token_and_answers(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    connected.add("served", with_token(address))
    recorded = connected.refresh("served")["served"]
    connected.grant("served__add")

    assert "served__add" in recorded.created
    assert connected.content("served__add", {"one": 1, "other": 2}) == {"result": 3}
    assert status.read("served").protocol == "2026-07-28"


def test_a_server_s_own_secret_overrides_the_environment(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", "another")
    monkeypatch.setenv("TOOLBELT_SECRET_SERVED__MCP_TOKEN", serving.TOKEN)
    connected.add("served", with_token(address))

    assert connected.refresh("served")["served"].error == ""


def test_a_wrong_token_is_reported_without_being_shown(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "wrong-t0ken")
    connected.add("served", with_token(address))

    error = connected.refresh("served")["served"].error

    assert "HTTP 401" in error
    assert "wrong-t0ken" not in error


def test_toolbelt_s_own_variables_are_not_passed_to_a_server(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@db/x")
    connected.add("served", {"url": address, "headers": {"Authorization": "Bearer ${DATABASE_URL}"}})

    assert connected.refresh("served")["served"].error == (
        "DATABASE_URL is Toolbelt's own variable and is never passed to a server. Use another variable."
    )


def test_a_tool_announced_over_http_is_imported(
    address: str, monkeypatch: pytest.MonkeyPatch, wait_for_news: Callable[[], None]
) -> None:
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    connected.add("served", with_token(address))
    connected.refresh("served")
    connected.grant("served__grow")

    connected.content("served__grow")
    wait_for_news()

    assert "served__fresh" in snapshots.catalog().tools


def test_an_unreachable_address_is_reported_with_what_to_check() -> None:
    connected.add("served", {"url": "http://127.0.0.1:9/mcp"})

    assert connected.refresh("served")["served"].error == (
        "Nothing answers at http://127.0.0.1:9/mcp (connection refused). Check the address, and that the server runs."
    )
