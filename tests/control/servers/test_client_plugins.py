"""Tests that declared tools are imported like those of a server: reviewed, retired and not granted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control.config import belt_effects, belts
from toolbelt.control.servers import client_plugins, decisions, inbox
from toolbelt.core import definitions, errors, tool_versions
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.surfaces import explain
from toolbelt.store import clock, revisions, snapshots

REFUND = {
    "name": "refund",
    "description": "Refund an order.",
    "input_schema": {"type": "object", "properties": {"order": {"type": "integer"}}},
    "annotations": {"destructiveHint": True},
}
SHIP = {"name": "ship", "description": "Ship an order."}


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    belts.import_(
        OPERATOR,
        {
            "plugins": [
                {"name": "shop", "namespace": "shop", "declared_by": ["ada"]},
                {"name": "code", "in_code": True},
            ],
            "agents": [{"key": "ada"}, {"key": "bob"}],
        },
    )


def declare(*tools: Any, name: str = "shop", **options: Any) -> client_plugins.RecordedTools:
    return client_plugins.declare(OPERATOR, name, tools, **options)


def approve(key: str) -> None:
    shown = {change.key: change.version_hash for change in inbox.load("shop", maximum=50).changes}
    decisions.approve(OPERATOR, {key: shown[key]})


def code(tool: str) -> str:
    return explain.why(RequestKey("ada"), tool).decision.code


def shown(key: str) -> definitions.Definition:
    return definitions.of(snapshots.catalog(), key)


def problems(*tools: Any) -> list[str]:
    with pytest.raises(errors.Invalid) as raised:
        declare(*tools)
    assert not models.Tool.objects.exists()
    return [str(problem) for problem in raised.value.problems]


def test_a_new_tool_awaits_review_and_is_not_granted() -> None:
    done = declare(REFUND)
    assert (done.created, done.unseen) == (("shop__refund",), ("shop__refund",))
    assert code("shop__refund") == "tool-unseen"
    approve("shop__refund")
    assert code("shop__refund") == "not-granted"


def test_repeating_a_declaration_changes_no_revision() -> None:
    declare(REFUND, SHIP)
    before, entries = revisions.number(), models.AuditEntry.objects.count()
    done = declare(SHIP, REFUND)
    assert (done.created, done.changed, done.retired) == ((), (), ())
    assert (revisions.number(), models.AuditEntry.objects.count()) == (before, entries)


def test_a_changed_tool_is_held_at_the_approved_version() -> None:
    declare(REFUND)
    approve("shop__refund")
    done = declare({**REFUND, "description": "Refund an order, twice."})
    assert done.held == ("shop__refund",)
    assert code("shop__refund") == "not-granted"
    assert shown("shop__refund").description == "Refund an order."
    (change,) = inbox.load("shop", maximum=50).changes
    assert [difference.field for difference in change.differences] == ["description"]
    # The older version is declared again, and changes nothing.
    assert declare(REFUND).changed == ()
    assert inbox.load("shop", maximum=50).changes


def test_an_import_keeps_a_held_tool_in_its_preview() -> None:
    declare(REFUND)
    approve("shop__refund")
    belts.import_(OPERATOR, {"agents": [{"key": "ada", "tools": ["shop__refund"]}]})
    declare({**REFUND, "description": "Refund an order, twice."})
    assert explain.why(RequestKey("ada"), "shop__refund").decision.state == "active"
    assert belt_effects.assess(OPERATOR, {"agents": [{"key": "bob", "title": "Bob"}]}).consequences == ()


def test_a_held_tool_costs_the_tokens_of_its_approved_version() -> None:
    declare(REFUND)
    approve("shop__refund")
    before = shown("shop__refund").tokens
    declare({**REFUND, "description": "Refund an order. " * 500})
    stored = snapshots.catalog()
    assert stored.tools["shop__refund"].tokens > 1000
    assert shown("shop__refund").tokens == definitions.tokens(stored, ["shop__refund"]) == before


def test_a_tool_that_is_not_declared_is_retired_until_it_is_declared_again() -> None:
    declare(REFUND, SHIP)
    approve("shop__refund")
    assert declare(SHIP).retired == ()
    assert declare(SHIP, complete=True).retired == ("shop__refund",)
    assert code("shop__refund") == "tool-retired"
    declare(REFUND, SHIP)
    assert code("shop__refund") == "not-granted"


def test_tools_of_a_trusted_plugin_need_no_review() -> None:
    models.Plugin.objects.filter(name="shop").update(trusted=True)
    assert declare(REFUND).unseen == ()
    assert code("shop__refund") == "not-granted"


def test_a_declaration_cannot_set_what_operators_decide() -> None:
    fields = ("default_on", "seen", "policy", "category", "blocked")
    reported = problems({**REFUND, **dict.fromkeys(fields, True)})
    assert [problem.partition(":")[0] for problem in reported] == [f"tools.refund.{name}" for name in fields]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("inputSchema", "Did you mean 'input_schema'?"),
        (
            "blocked",
            "Known fields: name, title, description, input_schema, output_schema, annotations.",
        ),
    ],
)
def test_an_unknown_field_of_a_declared_tool_is_refused(field: str, hint: str) -> None:
    assert problems({**REFUND, field: {}}) == [
        f"tools.refund.{field}: The field {field!r} is not known here. {hint}"
    ]


def test_declared_texts_are_cleaned_like_those_of_a_server() -> None:
    declare(
        {**REFUND, "description": "Refund\u202e an order.", "annotations": {"readOnlyHint": "yes", "x": 1}}
    )
    tool = models.Tool.objects.get()
    assert (tool.description, tool.annotations) == ("Refund an order.", {})


def test_an_agent_that_may_not_declare_a_plugin_does_not_find_it() -> None:
    declare(REFUND, agent="ada")
    for agent, name, nearest in (("bob", "shop", ()), ("ada", "code", ()), ("ada", "shpo", ("shop",))):
        with pytest.raises(errors.NotFound) as raised:
            declare(name=name, agent=agent)
        assert raised.value.nearest == nearest
    assert not models.Tool.objects.get().retired


def test_tools_of_a_plugin_in_code_cannot_be_declared() -> None:
    with pytest.raises(errors.NotFound, match="client plugin"):
        declare(REFUND, name="code")


def test_a_declaration_with_an_invalid_tool_is_refused_as_a_whole() -> None:
    assert problems(SHIP, {"name": "re fund"}) == [
        "tools.re fund: 're fund' cannot be the name of a tool. Call it 'shop__re_fund', for example."
    ]
    (schema_problem,) = problems(SHIP, {"name": "x", "input_schema": {"type": "nothing"}})
    assert schema_problem.startswith("tools.x: Its inputSchema cannot be used")
    (duplicate_problem,) = problems(SHIP, SHIP)
    assert duplicate_problem.startswith("tools.shop__ship: 'shop' lists it twice")


def test_a_tool_with_a_taken_key_is_refused() -> None:
    belts.import_(OPERATOR, {"plugins": [{"name": "loose"}], "tools": [{"key": "refund"}]})
    with pytest.raises(errors.Invalid, match="is taken by"):
        declare(REFUND, name="loose")


def test_a_declared_name_can_include_the_namespace() -> None:
    assert declare({**REFUND, "name": "shop__refund"}).created == ("shop__refund",)


def test_a_declaration_based_on_an_outdated_list_is_refused() -> None:
    declare(REFUND)
    seen = client_plugins.declared("shop")
    declare(SHIP)
    with pytest.raises(errors.Stale):
        declare(REFUND, was=seen)
    done = declare(REFUND, was=client_plugins.declared("shop"), complete=True)
    assert done.retired == ("shop__ship",)


def test_the_time_of_the_last_declaration_is_stored() -> None:
    assert client_plugins.last_declared("shop") is None
    declare()
    assert client_plugins.last_declared("shop") is not None


def test_declared_by_is_refused_for_plugins_in_code_and_upstream_servers() -> None:
    for fields in ({"in_code": True}, {"upstream": {"url": "https://example.com/mcp"}}):
        with pytest.raises(errors.Invalid, match=r"plugins.x.declared_by"):
            belts.import_(OPERATOR, {"plugins": [{"name": "x", "declared_by": ["ada"], **fields}]})


ORDER = {"order": 7}
TWICE = {**REFUND, "description": "Refund an order, twice."}
CLOSED: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "refundArguments",
    "type": "object",
    "properties": {"order": {"type": "integer", "title": "Order"}},
    "required": [],
    "additionalProperties": False,
}


def later(monkeypatch: pytest.MonkeyPatch, **time: int) -> None:
    now = clock.now() + dt.timedelta(**time)
    monkeypatch.setattr(clock, "now", lambda: now)


def admit(version: str, arguments: Any = ORDER) -> str:
    belts.import_(OPERATOR, {"agents": [{"key": "ada", "tools": ["shop__refund"]}]})
    call = Call(key=RequestKey("ada"), tool="shop__refund", arguments=arguments, version=version)
    answer = admissions.admit(call)
    return "admitted" if isinstance(answer, admissions.Admission) else answer.code


def versions(*tools: Any) -> dict[str, str]:
    return dict(client_plugins.state_of("shop", tools).versions)


@pytest.mark.parametrize("form", [CLOSED, {**CLOSED, "additionalProperties": True}])
def test_the_same_schema_in_another_form_changes_nothing(form: Any) -> None:
    declare(REFUND)
    approve("shop__refund")
    number = revisions.number()
    for _ in range(2):
        done = declare({**REFUND, "input_schema": form})
        assert (done.changed, done.held) == ((), ())
        declare(REFUND)
    assert revisions.number() == number
    assert versions({**REFUND, "input_schema": form}) == versions(REFUND)


def test_both_versions_of_a_rolling_deploy_run_once_the_newer_one_is_approved() -> None:
    declare(REFUND)
    approve("shop__refund")
    old = versions(REFUND)["refund"]
    needs = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    newer = {**REFUND, "input_schema": needs}
    declare(newer)
    new = versions(newer)["refund"]
    assert (admit(old), admit(new, {"id": 7}), admit("")) == ("admitted", "tool-unavailable", "admitted")
    approve("shop__refund")
    assert shown("shop__refund").input_schema == needs
    declare(REFUND)
    assert shown("shop__refund").input_schema == needs
    # Each is checked against its own version.
    assert (admit(old), admit(new, {"id": 7})) == ("admitted", "admitted")
    assert (admit(old, {"order": "x"}), admit(new)) == ("invalid-arguments", "invalid-arguments")
    assert admit("2:sha256:" + "0" * 64) == "tool-unavailable"


def test_the_approved_version_ends_24_hours_after_its_last_declaration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(REFUND)
    approve("shop__refund")
    declare(TWICE)
    later(monkeypatch, hours=23)
    declare(REFUND)
    assert client_plugins.end_versions() == 0
    later(monkeypatch, hours=23)
    assert client_plugins.end_versions() == 1
    assert code("shop__refund") == "not-granted"
    later(monkeypatch, hours=2)
    assert client_plugins.end_versions() == 1
    assert code("shop__refund") == "tool-changed"


def test_an_older_version_that_was_not_declared_for_24_hours_is_not_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(REFUND)
    approve("shop__refund")
    old = versions(REFUND)["refund"]
    declare(TWICE)
    approve("shop__refund")
    assert admit(old) == "admitted"
    later(monkeypatch, hours=25)
    assert admit(old) == "tool-unavailable"


def test_the_answer_names_what_waits_and_what_is_withdrawn() -> None:
    declare(REFUND, SHIP)
    approve("shop__refund")
    state = client_plugins.state_of("shop", [TWICE, SHIP])
    assert (state.waiting, state.withdrawn) == (("shop__refund", "shop__ship"), ())
    assert state.show.endswith(" mcp review shop")
    models.Tool.objects.filter(key="shop__ship").update(blocked=True)
    assert client_plugins.state_of("shop", [SHIP]).withdrawn == ("shop__ship",)
    assert client_plugins.state_of("shop", [REFUND]).show == ""


def test_a_version_that_is_approved_in_advance_is_available_at_once() -> None:
    declare(REFUND)
    approve("shop__refund")
    decisions.preapprove(OPERATOR, "shop", client_plugins.hashes("shop", [TWICE, SHIP]))
    done = declare(TWICE, SHIP)
    assert (done.held, done.unseen) == ((), ())
    assert shown("shop__refund").description == "Refund an order, twice."
    assert (code("shop__refund"), code("shop__ship")) == ("not-granted", "not-granted")
    # The version from before stays beside it.
    assert admit(versions(REFUND)["refund"]) == "admitted"
    assert declare({**SHIP, "description": "Ship it all."}).held == ("shop__ship",)


def test_a_rejected_version_stays_rejected_although_it_was_approved_in_advance() -> None:
    declare(REFUND)
    shown_ = {change.key: change.version_hash for change in inbox.load("shop", maximum=50).changes}
    decisions.reject(OPERATOR, shown_, plugin="shop")
    with pytest.raises(errors.Invalid, match="is not the hash of a version"):
        decisions.preapprove(OPERATOR, "shop", {"shop__refund": "sha256:0"})
    decisions.preapprove(OPERATOR, "shop", client_plugins.hashes("shop", [REFUND]))
    declare(REFUND)
    assert code("shop__refund") == "blocked"


def test_a_later_decision_withdraws_what_was_approved_in_advance() -> None:
    declare(REFUND)
    approve("shop__refund")
    decisions.preapprove(OPERATOR, "shop", client_plugins.hashes("shop", [TWICE]))
    assert preapproved() == ["shop__refund"]
    declare({**REFUND, "description": "Refund nothing."})
    approve("shop__refund")
    assert preapproved() == []


def test_a_version_that_awaits_review_is_approved_now_and_not_in_advance() -> None:
    declare(REFUND)
    decisions.preapprove(OPERATOR, "shop", client_plugins.hashes("shop", [REFUND]))
    assert (code("shop__refund"), preapproved()) == ("not-granted", [])


def test_a_rejected_version_is_not_approved_in_advance_after_another_was_listed() -> None:
    decisions.preapprove(OPERATOR, "shop", client_plugins.hashes("shop", [REFUND]))
    declare(REFUND)
    declare(TWICE)
    reviewed = {change.key: change.version_hash for change in inbox.load("shop", maximum=50).changes}
    decisions.reject(OPERATOR, reviewed, plugin="shop")
    assert preapproved() == []


def preapproved() -> list[str]:
    return [*snapshots.catalog().plugins["shop"].preapproved]


def test_an_old_belt_with_hashes_without_a_number_holds_nothing() -> None:
    declare(REFUND)
    approve("shop__refund")
    [entry] = belts.export()["tools"]
    old = tool_versions.unnumbered_version(snapshots.catalog().tools["shop__refund"])
    assert entry["approved"].startswith("2:sha256:")
    belts.import_(OPERATOR, {"tools": [{**entry, "approved": old}]})
    assert code("shop__refund") == "not-granted"
    assert models.Tool.objects.get().approved == entry["approved"]
