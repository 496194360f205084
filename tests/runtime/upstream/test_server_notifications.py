"""Tests that a server's output is recorded without secrets, and that a changed server's connection is closed."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime import connected
from tests.runtime.connected import stopped as stopped
from tests.runtime.connected import wait_for_news as wait_for_news
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import elicitation
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import catalog
from toolbelt.plugins.upstream import connection as live
from toolbelt.plugins.upstream import live_connection
from toolbelt.runtime import secrets
from toolbelt.runtime.operators import OPERATORS
from toolbelt.runtime.upstream import process_connections, server_lists, server_notifications
from toolbelt.store import snapshots

# Another thread writes the unsolicited answers of a connection.
pytestmark = pytest.mark.django_db(transaction=True)


class FakeConnection:
    """Replaces a connection; ``made`` lists all instances in order."""

    made: list[FakeConnection]

    has_session = None

    def __init__(
        self,
        settings: Any,
        *,
        environ: Any,
        on_list: Callable[[server_lists.ServerListing], None],
        **more: Any,
    ) -> None:
        self.settings, self.environ, self.on_list = settings, environ, on_list
        self.is_closed = threading.Event()
        self.made.append(self)

    async def ask(self) -> server_lists.ServerListing:
        return server_lists.ServerListing(stderr="Bearer s3cret-t0ken")

    async def close(self) -> None:
        self.is_closed.set()

    def status(self) -> live_connection.Status:
        return live_connection.Status(state="open")


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> type[FakeConnection]:
    monkeypatch.setattr(live, "Server", FakeConnection)
    monkeypatch.setattr(FakeConnection, "made", [], raising=False)
    connected.add("files", {"command": "x"})
    return FakeConnection


def test_a_secret_in_a_server_s_output_is_not_recorded(connections: type[FakeConnection]) -> None:
    secrets.mask_always("s3cret-t0ken")
    seen: list[server_lists.ServerListing] = []
    done = threading.Event()
    server_lists.refresh(["files"], lambda name, answer: seen.append(answer))

    def listen(name: str, answer: server_lists.ServerListing) -> None:
        seen.append(answer)
        done.set()

    OPERATORS.record_list = listen
    try:
        connections.made[0].on_list(
            server_lists.ServerListing(error="No s3cret-t0ken", stderr="s3cret-t0ken")
        )
        assert done.wait(20)
    finally:
        OPERATORS.record_list = configured.record_unsolicited

    assert [(answer.error, answer.stderr) for answer in seen] == [
        ("", "Bearer [withheld]"),
        ("No [withheld]", "[withheld]"),
    ]


def test_frequent_announcements_are_recorded_one_at_a_time_and_the_last_always(
    connections: type[FakeConnection],
) -> None:
    seen: list[str] = []
    started, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def listen(name: str, answer: server_lists.ServerListing) -> None:
        seen.append(answer.server)
        started.set()
        assert go_on.wait(20)
        if answer.server == "99":
            done.set()

    connected.refresh("files")
    OPERATORS.record_list = listen
    try:
        on_list = connections.made[0].on_list
        on_list(server_lists.ServerListing(server="first"))
        assert started.wait(20)
        for number in range(100):
            on_list(server_lists.ServerListing(server=str(number)))
        go_on.set()
        assert done.wait(20)
    finally:
        OPERATORS.record_list = configured.record_unsolicited

    assert seen == ["first", "99"]


def disable() -> None:
    entries.change(connected.OPERATOR, "plugin", "files", {"active": False})


def reconnect_differently() -> None:
    entries.change(connected.OPERATOR, "plugin", "files", {"upstream": {"command": "y"}})


def block() -> None:
    entries.change(connected.OPERATOR, "plugin", "files", {"blocked": True})


@pytest.mark.parametrize("change", [disable, reconnect_differently, block])
def test_a_disabled_changed_or_blocked_server_is_closed_at_the_next_request(
    connections: type[FakeConnection], change: Callable[[], None]
) -> None:
    connected.refresh("files")
    assert not connections.made[0].is_closed.is_set()

    change()
    snapshots.catalog()

    assert connections.made[0].is_closed.wait(20)


def test_refreshing_a_disabled_server_does_not_keep_its_connection(connections: type[FakeConnection]) -> None:
    disable()

    assert connected.refresh("files")["files"].error == ""

    assert connections.made[0].is_closed.wait(20)


def test_a_server_s_name_gives_no_access_to_another_plugin_s_secrets(
    connections: type[FakeConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_GH__KEY", "of-the-namespace")
    belts.import_(connected.OPERATOR, {"plugins": [{"name": "other", "namespace": "gh"}]})
    row = catalog.Plugin(name="GH", upstream='{"command": "x"}')
    process_connections.apply_catalog(snapshots.catalog())

    server_lists._ask(row)
    assert "KEY" not in connections.made[-1].environ

    server_lists._ask(dataclasses.replace(row, name="free"))
    monkeypatch.setenv("TOOLBELT_SECRET_FREE__KEY", "of-its-own")
    assert connections.made[-1].environ["KEY"] == "of-its-own"


def test_a_request_to_ask_is_reported_again_after_connections_were_stopped() -> None:
    reviewed: list[str] = []
    OPERATORS.request_review = reviewed.append
    try:
        for _ in range(2):
            server_notifications.report_would_ask("files")
            server_notifications.report_would_ask("files")
            process_connections.stop()
    finally:
        OPERATORS.request_review = elicitation.request_review

    assert reviewed == ["files", "files"]
