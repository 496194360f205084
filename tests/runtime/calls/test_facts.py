"""Tests that every road records the facts by which a call was decided, so that the decision can be made again."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.runtime import sample_plugins
from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.core import errors, sessions, tool_versions
from toolbelt.core.rules import budgets
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions, gates, last_checks
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.surfaces import snapshots

KB = [tool.name for tool in sample_plugins.Kb.tools]
BELT: dict[str, Any] = {
    "tools": [{"key": "clock", "description": "Tell the time."}],
    "toolkits": [{"key": "more", "members": ["kb__plain"]}, {"key": "rare", "members": ["kb__odd"]}],
    "loadouts": [{"name": "desk", "plugins": ["kb"]}],
    "agents": [
        {
            "key": "ada",
            "tools": ["kb__search", "kb__crash", "clock"],
            "allowed_toolkits": ["more", "rare"],
            "session_loadouts": ["desk"],
            "tools_config": {"kb__visit": False},
        }
    ],
}


@pytest.fixture
def kb(db: None, install: Install) -> None:
    install("Kb", config="api_key: sesame-2000", **BELT)


def record() -> models.CallRecord:
    return models.CallRecord.objects.latest("id")


def call(tool: str, arguments: Any = None, by_dispatch: bool = False, **about: Any) -> models.CallRecord:
    """Call a tool as ada, and return the record."""
    given = {} if arguments is None else arguments
    calls.answer_blocking(
        Call(key=RequestKey("ada", **about), tool=tool, arguments=given, by_dispatch=by_dispatch)
    )
    return record()


def version_of(tool: str) -> str:
    """Return how a record names the version of a tool that agents have."""
    return tool_versions.version(snapshots.take(RequestKey("ada"))[0].catalog.tools[tool])[-64:][:24]


def test_a_call_records_why_the_agent_had_the_tool_and_in_which_version(kb: None) -> None:
    made = call("kb__search", {"query": "x"})

    assert (made.outcome, made.reason, made.revision) == ("ok", "always-on", belts.revision())
    assert (made.definition, made.subagent, made.dispatched) == (version_of("kb__search"), "", False)


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "reason"),
    [
        ("kb__search", {"query": 1}, "invalid-arguments", "always-on"),
        ("kb__crash", {}, "tool-failed", "always-on"),
        ("kb__visit", {}, "tool-denied", "override-off"),
        ("kb__plain", {}, "tool-not-active", "loadable"),
        ("kb__fail", {}, "unknown-tool", "not-granted"),
    ],
)
def test_a_call_that_did_not_succeed_records_the_same_facts(
    kb: None, tool: str, arguments: Any, outcome: str, reason: str
) -> None:
    made = call(tool, arguments)

    assert (made.outcome, made.reason, made.definition) == (outcome, reason, version_of(tool))


def test_a_tool_that_does_not_exist_has_neither_reason_nor_version(kb: None) -> None:
    made = call("kb__nothing")

    assert (made.reason, made.definition, made.dispatched) == ("", "", False)


def test_another_text_of_a_tool_is_another_version(kb: None) -> None:
    before = call("clock").definition
    belts.import_(OPERATOR, {"tools": [{"key": "clock", "description": "Tell the time in UTC."}]})

    assert call("clock").definition not in (before, "", None)


def test_a_call_of_a_subagent_records_its_kind(kb: None) -> None:
    made = call("kb__search", {"query": "x"}, subagent="explore")

    assert (made.subagent, made.reason) == ("explore", "pattern")


def test_a_call_through_call_tool_records_that_it_was_dispatched(kb: None) -> None:
    made = call("call_tool", {"tool": "kb__plain"}, by_dispatch=True)

    assert (made.tool, made.outcome, made.dispatched, made.reason) == ("kb__plain", "ok", True, "loadable")


def test_a_load_through_call_tool_is_dispatched_as_well(kb: None) -> None:
    arguments = {"tool": "load_tools", "arguments": {"toolkit": "more"}}

    made = call("call_tool", arguments, by_dispatch=True, session="s")

    assert (made.tool, made.outcome, made.dispatched) == ("load_tools", "ok", True)


def state(made: models.CallRecord) -> Any:
    """Return what the session had loaded for a call; None if nothing."""
    return models.SessionState.objects.get(pk=made.state).document if made.state else None


def test_a_call_records_what_the_session_had_loaded_for_its_request(kb: None) -> None:
    for toolkit in ("rare", "more"):
        load = call("load_tools", {"toolkit": toolkit}, session="s", request_id="r1")
        assert (state(load), load.revision) == (None, belts.revision())
    at_once = call("kb__plain", session="s", request_id="r1")
    later = call("kb__plain", session="s", request_id="r2")

    # A load counts from the next request on.
    assert (at_once.outcome, state(at_once)) == ("tool-not-active", None)
    assert (later.outcome, later.reason) == ("ok", "loaded")
    assert state(later) == {
        "by_agent": False,
        "loaded": [["toolkit", "rare"], ["toolkit", "more"]],
        "loadout": "",
    }


def test_calls_in_the_same_state_share_one_document(kb: None) -> None:
    for session in ("s1", "s2"):
        call("load_tools", {"toolkit": "more"}, session=session, request_id="r1")
        call("kb__plain", session=session, request_id="r2")
        call("kb__plain", session=session, request_id="r3")

    assert models.SessionState.objects.count() == 1
    assert models.CallRecord.objects.exclude(state="").count() == 4


def test_a_session_with_a_loadout_of_its_own_records_it(kb: None) -> None:
    models.AgentSession.objects.create(
        agent=models.Agent.objects.get(key="ada"), key="s", loadout="desk", state={"by_agent": True}
    )

    made = call("kb__odd", session="s", request_id="r")

    assert made.reason == "loadout-plugin"
    assert state(made) == {"by_agent": True, "loaded": [], "loadout": "desk"}


def admit(tool: str, **about: Any) -> models.CallRecord:
    """Have a call of ada's own program admitted, and return the record."""
    admissions.admit(Call(key=RequestKey("ada"), tool=tool, arguments={"zone": "UTC"}, **about))
    return record()


def test_an_admission_to_the_agents_own_program_records_the_facts(kb: None) -> None:
    made = admit("clock")

    assert (made.outcome, made.reason, made.definition) == ("admitted", "always-on", version_of("clock"))
    assert made.arguments_digest == call("clock", {"zone": "UTC"}).arguments_digest


def test_an_admission_records_the_version_that_the_program_has(kb: None) -> None:
    shown = snapshots.take(RequestKey("ada"))[0].catalog.tools["clock"]
    exact = tool_versions.unnumbered_version(shown)

    assert admit("clock", version=exact).definition == version_of("clock")
    other = admit("clock", version="2:sha256:" + "ab" * 32)
    assert (other.outcome, other.definition, other.reason) == ("tool-unavailable", "ab" * 12, "always-on")


def test_a_call_that_ran_without_an_admission_claims_no_decision(kb: None) -> None:
    admissions.record(Call(key=RequestKey("ada", subagent="plan"), tool="clock", arguments={}), "ok")

    made = record()
    assert (made.state, made.definition, made.revision, made.reason) == (None, None, None, "")
    assert made.subagent == "plan"


def digests(*arguments: Any) -> set[str | None]:
    return {call("clock", given).arguments_digest for given in arguments}


def test_the_same_arguments_have_the_same_digest_however_they_are_written(kb: None) -> None:
    assert len(digests({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0})) == 1
    assert (
        len(digests({"a": 1}, {"a": True}, {"a": "1"}, {"a": [1]}, {}, {"a": "\ud800"}, {"a": "\ud801"})) == 7
    )


def test_the_digest_is_of_the_arguments_that_the_tool_gets(kb: None) -> None:
    direct = call("kb__search", {"query": "x"}).arguments_digest
    dispatched = call("call_tool", {"tool": "kb__search", "arguments": {"query": "x"}}, by_dispatch=True)

    assert dispatched.arguments_digest == direct


def test_a_call_that_is_denied_while_it_waits_records_the_state_that_denied_it(
    kb: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_again = last_checks.check_again

    def flip_first(admitted: gates.Admitted) -> None:
        switches.override(OPERATOR, "ada", "kb__search", False)
        check_again(admitted)

    monkeypatch.setattr(last_checks, "check_again", flip_first)
    before = belts.revision()

    made = call("kb__search", {"query": "x"})

    assert (made.outcome, made.reason) == ("tool-denied", "override-off")
    assert made.revision is not None
    assert made.revision > before


def session_of(made: models.CallRecord) -> sessions.Session | None:
    """Return the session of a call, as its record describes it."""
    if not made.session:
        return None
    document = state(made) or {"loadout": "", "by_agent": False, "loaded": []}
    return sessions.Session(
        key=made.session,
        loadout=document["loadout"],
        by_agent=document["by_agent"],
        changes=tuple(sessions.Change(kind=kind, name=name, on=True) for kind, name in document["loaded"]),
    )


def test_the_facts_alone_give_the_recorded_reason_again(kb: None) -> None:
    call("load_tools", {"toolkit": "rare"}, session="s", request_id="r1")
    for tool in KB:
        call(tool, session="s", request_id="r1")
        call(tool, session="s", request_id="r2")
        call(tool, session="s", subagent="plan")
        call(tool)

    made = models.CallRecord.objects.filter(tool__in=KB)
    again = []
    for record in made:
        snapshot, _ = snapshots.take(RequestKey("ada", subagent=record.subagent or None))
        resolved = budgets.resolve(dataclasses.replace(snapshot, session=session_of(record)))
        again.append(resolved.decision(record.tool).code)

    assert again == [record.reason for record in made]
    assert {"always-on", "loadable", "loaded", "override-off", "not-granted"} <= set(again)


def choose(*paths: str, tool: str = "kb__search") -> None:
    entries.change(OPERATOR.replace(confirm=True), "tool", tool, {"recorded_fields": list(paths)})


def test_a_call_records_the_arguments_that_an_operator_chose(kb: None) -> None:
    assert call("kb__search", {"query": "x"}).chosen_fields is None
    choose("query", "to.domain")
    assert call("kb__search", {"query": "x"}).chosen_fields == {"query": "x"}
    assert call("kb__search", {"query": 1}).chosen_fields == {"query": 1}
    assert call("kb__search", {}).chosen_fields == {}
    assert call("kb__crash", {"query": "x"}).chosen_fields is None


def test_chosen_arguments_are_masked_and_never_large(kb: None) -> None:
    choose("query")
    secret = "ghp_" + "0123456789abcdef" * 2 + "wxyz"
    [masked] = (call("kb__search", {"query": f"the key is {secret}"}).chosen_fields or {}).values()
    assert secret not in masked
    assert call("kb__search", {"query": "x" * 1010}).chosen_fields is not None
    assert call("kb__search", {"query": "x" * 1100}).chosen_fields is None


@pytest.mark.parametrize(
    "paths", [["api_key"], ["to.password"], ["a..b"], [""], ["x" * 201], [f"a{n}" for n in range(11)]]
)
def test_what_cannot_be_recorded_is_refused(kb: None, paths: list[str]) -> None:
    with pytest.raises(errors.Invalid) as refused:
        choose(*paths)
    assert {problem.path for problem in refused.value.problems} == {"tools.kb__search.recorded_fields"}


def test_a_load_records_its_name_and_status(kb: None) -> None:
    loads = [call("load_tools", {"toolkit": name}, session="s").detail for name in ("more", "more", "none")]
    assert loads == ["more loaded", "more already_loaded", "none unknown"]
    assert call("unload_tools", {"toolkit": "more"}, session="s").detail == "more unloaded"
    assert call("load_tools", {"toolkit": "rare"}).detail == "rare no_session"
    assert call("list_toolkits", session="s").detail is None
    assert call("kb__search", {"query": "x"}, session="s").detail is None
