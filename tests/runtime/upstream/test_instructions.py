"""Tests of the instructions that a real server states."""

from __future__ import annotations

import pytest

from tests.plugins.upstream import listing, scripting
from tests.runtime import connected
from toolbelt.control.servers import instructions
from toolbelt.core.imported import instructions as stated
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.django_db(transaction=True)
stopped, script = connected.stopped, connected.script


def test_instructions_of_a_server_are_recorded_cleaned_and_cut_and_reach_no_agent(
    script: scripting.Script,
) -> None:
    script.lists(listing.tool("echo", "Says it again."))
    script.instructs("Ask first.\u200b\n" + stated.MAX_LENGTH * "x")

    connected.ready(script, "echo")

    found = instructions.find("files")
    assert found.text.startswith("Ask first.\nxx")
    assert len(found.text) == stated.MAX_LENGTH
    assert "Ask first" not in repr(surfaces.ask("ada"))
