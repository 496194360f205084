"""Tests that a server's log messages are recorded without its secrets, and that a changed server's connection ends."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime import connected
from tests.runtime.connected import heard as heard
from tests.runtime.connected import stopped as stopped
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import elicitation
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import catalog
from toolbelt.plugins.upstream import connection as live
from toolbelt.plugins.upstream import live_connection
from toolbelt.runtime import secrets, upstream_connections, upstream_listing, upstream_news
from toolbelt.store import snapshots

# What a connection tells unasked is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)


class Telling:
    """Stands where a connection does; ``made`` are all of them, in order."""

    made: list[Telling]

    has_session = None

    def __init__(
        self, settings: Any, *, environ: Any, on_list: Callable[[upstream_listing.Answer], None], **more: Any
    ) -> None:
        self.settings, self.environ, self.on_list = settings, environ, on_list
        self.is_closed = threading.Event()
        self.made.append(self)

    async def ask(self) -> upstream_listing.Answer:
        return upstream_listing.Answer(stderr="Bearer s3cret-t0ken")

    async def close(self) -> None:
        self.is_closed.set()

    def status(self) -> live_connection.Status:
        return live_connection.Status(state="open")


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> type[Telling]:
    monkeypatch.setattr(live, "Server", Telling)
    monkeypatch.setattr(Telling, "made", [], raising=False)
    connected.add("files", {"command": "x"})
    return Telling


def test_a_secret_that_a_server_says_back_is_recorded_nowhere(telling: type[Telling]) -> None:
    secrets.mask_from_now_on("s3cret-t0ken")
    seen: list[upstream_listing.Answer] = []
    done = threading.Event()
    upstream_listing.refresh(["files"], lambda name, answer: seen.append(answer))

    def listen(name: str, answer: upstream_listing.Answer) -> None:
        seen.append(answer)
        done.set()

    upstream_news.register(listen)
    try:
        telling.made[0].on_list(upstream_listing.Answer(error="No s3cret-t0ken", stderr="s3cret-t0ken"))
        assert done.wait(20)
    finally:
        upstream_news.register(configured.record_unsolicited)

    assert [(one.error, one.stderr) for one in seen] == [
        ("", "Bearer [withheld]"),
        ("No [withheld]", "[withheld]"),
    ]


def test_a_server_that_never_stops_telling_is_recorded_one_at_a_time_and_at_last(
    telling: type[Telling],
) -> None:
    seen: list[str] = []
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def listen(name: str, answer: upstream_listing.Answer) -> None:
        seen.append(answer.server)
        begun.set()
        assert go_on.wait(20)
        if answer.server == "99":
            done.set()

    connected.refresh("files")
    upstream_news.register(listen)
    try:
        on_list = telling.made[0].on_list
        on_list(upstream_listing.Answer(server="first"))
        assert begun.wait(20)
        for number in range(100):
            on_list(upstream_listing.Answer(server=str(number)))
        go_on.set()
        assert done.wait(20)
    finally:
        upstream_news.register(configured.record_unsolicited)

    assert seen == ["first", "99"]


def off() -> None:
    entries.change(connected.OPERATOR, "plugin", "files", {"active": False})


def reconnected() -> None:
    configured.reconnect(connected.OPERATOR.actor, "files", {"command": "y"})


def stopped_at_once() -> None:
    entries.change(connected.OPERATOR, "plugin", "files", {"blocked": True})


@pytest.mark.parametrize("change", [off, reconnected, stopped_at_once])
def test_a_server_that_is_no_longer_wanted_so_is_ended_with_the_next_question(
    telling: type[Telling], change: Callable[[], None]
) -> None:
    connected.refresh("files")
    assert not telling.made[0].is_closed.is_set()

    change()
    snapshots.catalog()

    assert telling.made[0].is_closed.wait(20)


def test_a_server_that_is_off_is_asked_and_not_kept(telling: type[Telling]) -> None:
    off()

    assert connected.refresh("files")["files"].error == ""

    assert telling.made[0].is_closed.wait(20)


def test_a_name_opens_no_other_plugins_secrets(
    telling: type[Telling], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_GH__KEY", "of-the-namespace")
    belts.import_(connected.OPERATOR, {"plugins": [{"name": "other", "namespace": "gh"}]})
    row = catalog.Plugin(name="GH", upstream='{"command": "x"}')
    upstream_connections.attend(snapshots.catalog())

    upstream_listing._ask(row)
    assert "KEY" not in telling.made[-1].environ

    upstream_listing._ask(dataclasses.replace(row, name="free"))
    monkeypatch.setenv("TOOLBELT_SECRET_FREE__KEY", "of-its-own")
    assert telling.made[-1].environ["KEY"] == "of-its-own"


def test_what_a_server_would_ask_is_told_again_after_the_servers_were_stopped() -> None:
    heard: list[str] = []
    upstream_news.tell_of_questions(heard.append)
    try:
        for _ in range(2):
            upstream_news.report_would_ask("files")
            upstream_news.report_would_ask("files")
            upstream_connections.stop()
    finally:
        upstream_news.tell_of_questions(elicitation.request_review)

    assert heard == ["files", "files"]
