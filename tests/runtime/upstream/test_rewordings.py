"""Tests of servers whose processes describe a tool differently."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.plugins.upstream import listing, scripting
from tests.runtime import connected
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.core import admitting as gate
from toolbelt.core import definitions
from toolbelt.core.imported import rewordings
from toolbelt.runtime import calls
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db(transaction=True)
stopped, script, wait_for_news = connected.stopped, connected.script, connected.wait_for_news


def ready(script: scripting.Script) -> str:
    """Make a session use the process that lists the approved description, and return that."""
    script.lists(listing.tool("echo", "Runs in PROCESS."))
    connected.ready(script, "echo")
    assert isinstance(calls.run("ada", "files__echo", {}, "s1"), calls.Result)
    return sent()


def sent() -> str:
    return definitions.of(snapshots.catalog(), "files__echo").description


def test_a_process_that_lists_another_description_refuses_only_its_own_calls(
    script: scripting.Script, wait_for_news: Callable[[], None]
) -> None:
    approved = ready(script)

    refused = calls.run("ada", "files__echo", {}, "s2")
    wait_for_news()

    assert isinstance(refused, gate.Refusal)
    assert refused.code == "tool-unavailable"
    (record,) = models.CallRecord.objects.filter(outcome="tool-unavailable")
    assert record.error == "On this connection, files does not describe echo as it was approved."
    assert snapshots.catalog().tools["files__echo"].varies
    assert sent() == approved
    assert isinstance(calls.run("ada", "files__echo", {}, "s1"), calls.Result)


def test_no_process_refuses_a_call_while_the_approved_description_is_kept(script: scripting.Script) -> None:
    approved = ready(script)
    entries.change(connected.OPERATOR, "plugin", "files", {"keep_descriptions": True})
    starts = script.starts

    results = [calls.run("ada", "files__echo", {}, session) for session in ("s2", "s3")]

    assert all(isinstance(result, calls.Result) for result in results)
    assert sent() == approved
    assert script.starts == starts + 2


def test_a_process_with_another_schema_refuses_although_the_description_is_kept(
    script: scripting.Script, wait_for_news: Callable[[], None]
) -> None:
    ready(script)
    entries.change(connected.OPERATOR, "plugin", "files", {"keep_descriptions": True})
    script.lists(listing.tool("echo", "Runs in PROCESS.", {"path": {"type": "string"}}))

    refused = calls.run("ada", "files__echo", {}, "s2")
    wait_for_news()

    assert isinstance(refused, gate.Refusal)
    assert isinstance(calls.run("ada", "files__echo", {}, "s1"), gate.Refusal)


def test_a_refresh_lists_again_only_as_often_as_necessary(script: scripting.Script) -> None:
    ready(script)
    starts = script.starts

    refreshed = connected.refresh("files")["files"]
    assert (refreshed.held, refreshed.differing) == ((), ("files__echo",))
    assert script.starts == starts + 2

    script.lists(listing.tool("echo", "Is new."), listing.tool("other", "Is new."))
    connected.refresh("files")
    assert script.starts == starts + 2


def test_a_description_that_every_process_lists_is_held_after_a_limited_number_of_lists(
    script: scripting.Script,
) -> None:
    script.lists(listing.tool("echo", "Says it again."))
    connected.ready(script, "echo")
    script.lists(listing.tool("echo", "Says it once more."))
    starts = script.starts

    changed = connected.refresh("files")["files"]

    assert changed.held == ("files__echo",)
    assert script.starts == starts + rewordings.MAX_LISTED_AGAIN
