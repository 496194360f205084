"""Tests of the Review page: everything that waits for an operator, and that only what was shown is approved."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.plugins.upstream import listing
from tests.web import acting, servers
from toolbelt import models
from toolbelt.control.reports import queries
from toolbelt.store import snapshots
from toolbelt.web.review import views

pytestmark = pytest.mark.django_db

DECIDE = "/review/decide/"


@pytest.fixture
def changed(belt: None) -> None:
    """Let a server change behind our back, and an agent have an override for a tool that got another name."""
    servers.changed()
    models.ToolOverride.objects.create(
        agent=factories.agent("dee"), tool=models.Tool.objects.get(key="files__list"), on=False
    )


def look(browser: Client, **said: Any) -> Any:
    """Open the page; give what it shows."""
    return browser.get("/review/", {"plugin": "files", **said}).context["page"]


def change(page: Any, key: str) -> Any:
    return next(one for one in page.review.changes if one.key == key)


def decide(browser: Client, decision: str, *keys: str, htmx: bool = True, **fields: Any) -> Any:
    given = {"decision": decision, "tool": servers.values(*keys), "plugin": "files"}
    return acting.post(browser, DECIDE, htmx=htmx, **given | fields)


def waiting(page: Any) -> list[str]:
    return [one.key for one in page.review.changes]


def test_flagged_tools_come_first_and_then_what_may_cost_agents_something(
    keeper: Client, changed: None
) -> None:
    review = look(keeper).review
    assert [(one.key, one.word) for one in review.changes] == [
        ("files__help", "new"),
        ("files__write", "changed"),
        ("files__ls", "renamed"),
    ]
    assert (review.flagged, review.unflagged, review.renamed, review.later) == (1, 2, True, 0)


def test_a_changed_tool_is_shown_field_by_field_against_what_was_approved(
    keeper: Client, changed: None
) -> None:
    write = change(look(keeper), "files__write")
    described, arguments = write.differences
    assert (described.label, arguments.label) == ("Description", "Arguments")
    old, new = described.text.shown
    assert (old.sign, new.sign) == ("−", "+")
    assert [piece.text for piece in new.pieces if piece.tone == "changed"] == [", or a link"]
    assert arguments.notes == ("new optional argument mode",)
    assert "+" in {line.sign for line in arguments.text.shown}
    assert write.delta.startswith("+")
    assert not write.flags


def test_a_renamed_tool_names_what_it_was_and_who_named_it(keeper: Client, changed: None) -> None:
    renamed = change(look(keeper), "files__ls")
    assert "The same tool as files__list" in renamed.about
    assert renamed.users == "used by agent dee under its old name"


def test_texts_of_strangers_are_shown_and_do_nothing(keeper: Client, changed: None) -> None:
    html = keeper.get("/review/").content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\u202e" not in html
    assert '<span class="hidden-sign" title="right-to-left override">U+202E</span>' in html
    flags = ["".join(piece.text for piece in flag) for flag in change(look(keeper), "files__help").flags]
    assert any(flag.startswith("overrules instructions: ") for flag in flags)
    assert "holds characters that cannot be seen" in flags


@pytest.mark.parametrize("htmx", [True, False])
def test_what_is_selected_is_approved_and_nothing_else(keeper: Client, changed: None, htmx: bool) -> None:
    answer = decide(keeper, "approve", "files__write", htmx=htmx)
    assert answer.status_code == (200 if htmx else 303)
    page = answer.context["page"] if htmx else look(keeper)
    assert page.notice.text == "files__write approved."
    assert waiting(page) == ["files__help", "files__ls"]
    assert servers.stored("files__write").description == "Write a file, or a link."
    assert acting.newest().actor == "kim"


def test_an_approval_in_place_brings_parts_and_no_page(keeper: Client, changed: None) -> None:
    html = acting.text(decide(keeper, "approve", "files__write"))
    assert "<html" not in html
    assert '<div id="review" hx-swap-oob="innerHTML">' in html
    assert '<div id="live" hx-swap-oob="innerHTML">files__write approved.' in html


def test_an_approval_can_be_taken_back_as_one(keeper: Client, changed: None) -> None:
    page = decide(keeper, "approve", "files__write", "files__ls", carry="yes").context["page"]
    # A denial counts for both names from then on.
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False, "files__ls": False}
    undone = acting.post(keeper, f"/audit/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert undone.status_code == 303
    assert waiting(look(keeper)) == ["files__help", "files__write", "files__ls"]
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_a_new_name_takes_nothing_over_if_that_is_not_wanted(keeper: Client, changed: None) -> None:
    decide(keeper, "approve", "files__ls")
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_who_may_not_change_agents_lets_no_name_take_over_what_agents_say(
    keeper: Client, changed: None
) -> None:
    auth.User.objects.get(username="kim").user_permissions.remove(
        auth.Permission.objects.get(codename="change_agent")
    )
    assert not look(keeper).review.may_carry
    decide(keeper, "approve", "files__ls", carry="yes")
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_what_is_selected_is_approved_once_somebody_has_said_that_orders_to_models_are_meant(
    keeper: Client, changed: None
) -> None:
    every = servers.values("files__write", "files__ls", "files__help")
    answer = acting.post(keeper, DECIDE, decision="approve", tool=every)
    question = answer.context["confirmation"]
    assert question.title == "Approve 3 tools?"
    assert any("files__help: overrules instructions" in reason for reason in question.reasons)
    assert len(waiting(look(keeper))) == 3
    again = {name: value for name, value in question.fields if name != "tool"}
    acting.post(keeper, DECIDE, tool=every, **again)
    assert waiting(look(keeper)) == []


def test_approving_the_unflagged_tools_leaves_the_flagged_ones(keeper: Client, changed: None) -> None:
    html = keeper.get("/review/?plugin=files").content.decode()
    assert "Approve 2 unflagged" in html
    assert f'name="unflagged" value="{servers.values("files__help")[0]}"' not in html
    shown = servers.values("files__write", "files__ls")
    assert all(f'name="unflagged" value="{value}"' in html for value in shown)
    page = decide(keeper, "approve-unflagged", unflagged=shown).context["page"]
    assert page.notice.text == "2 tools approved."
    assert waiting(page) == ["files__help"]


def test_approving_several_tools_first_says_which_agents_get_them(keeper: Client, changed: None) -> None:
    factories.loadout("all-files", plugins=["files"])
    factories.agent("gus", loadout="all-files", max_tools=2)
    shown = servers.values("files__write", "files__ls")
    question = decide(keeper, "approve-unflagged", unflagged=shown).context["confirmation"]
    assert (question.title, question.confirm_word) == ("Approve 2 tools?", "Approve 2 tools")
    assert [difference.what for difference in question.differences] == ["gus"]
    assert (question.effect.tools, question.dangerous) == ((1, 3), True)
    assert question.reasons == (
        "Enables 2 tools that may be destructive, for gus.",
        "gus is over budget afterwards.",
    )
    assert waiting(look(keeper)) == ["files__help", "files__write", "files__ls"]
    page = decide(keeper, "approve-unflagged", unflagged=shown, confirm="yes").context["page"]
    assert page.notice.text == "2 tools approved."


def test_even_a_flagged_tool_that_is_sent_as_unflagged_is_asked_about(keeper: Client, changed: None) -> None:
    sent = servers.values("files__help")
    answer = acting.post(keeper, DECIDE, decision="approve-unflagged", unflagged=sent)
    assert answer.context["confirmation"].title == "Approve files__help?"


def test_the_button_of_a_row_decides_on_that_row_and_keeps_what_is_selected(
    keeper: Client, changed: None
) -> None:
    (value,) = servers.values("files__write")
    page = decide(keeper, f"approve:{value}", "files__ls").context["page"]
    assert page.notice.text == "files__write approved."
    assert [(one.key, one.ticked) for one in page.review.changes] == [
        ("files__help", False),
        ("files__ls", True),
    ]
    (value,) = servers.values("files__ls")
    assert decide(keeper, f"reject:{value}").context["page"].notice.text.startswith("files__ls rejected")


def test_tools_of_several_plugins_are_one_list_and_one_step_to_undo(keeper: Client, changed: None) -> None:
    servers.add("mail")
    servers.answer(servers.READ, name="mail")
    both = [*servers.values("files__write"), *servers.values("mail__read", name="mail")]
    page = keeper.get("/review/").context["page"]
    assert {"files__write", "mail__read"} <= set(waiting(page))
    assert {choice.value: choice.count for choice in page.review.plugins}["mail"] == 1
    page = acting.post(keeper, DECIDE, decision="approve", tool=both).context["page"]
    assert page.notice.text == "2 tools approved."
    acting.post(keeper, f"/audit/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert {"files__write", "mail__read"} <= set(waiting(keeper.get("/review/").context["page"]))


def test_what_else_needs_attention_is_on_the_page_as_on_the_overview(keeper: Client, changed: None) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed", error="It <b>broke</b>.")
    models.Agent.objects.filter(key="ada").update(max_tools=0, on_exceed="warn")
    models.Tool.objects.filter(key__in=["shell", "papers"]).update(blocked=True)
    snapshots.forget()
    overview = [one.title for one in keeper.get("/").context["page"].concerns]
    page = keeper.get("/review/").context["page"]
    here = [one.title for one in page.concerns]
    blocked = ["Tool papers is blocked for everyone", "Tool shell is blocked for everyone"]
    assert {"GitHub has failed", "ada: over budget", *blocked} <= set(here)
    assert [title for title in here if "Tool " not in title] == [
        title for title in overview if "await" not in title and "blocked" not in title
    ]
    assert "2 entries blocked for everyone" in overview
    assert page.others == len(here)


def test_hundreds_of_new_tools_are_decided_on_in_parts(keeper: Client, belt: None) -> None:
    servers.add()
    servers.answer(*[listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(130)])
    page, most = look(keeper), views.MAX_AT_ONCE
    assert (len(page.review.changes), page.review.later) == (most, 130 - most)
    every = [one.value for one in page.review.changes]
    page = decide(keeper, "approve-unflagged", unflagged=every).context["page"]
    assert page.notice.text == f"{most} tools approved."
    assert page.review.later == 130 - 2 * most


def test_the_review_takes_the_same_few_queries_however_many_tools_wait(keeper: Client, changed: None) -> None:
    look(keeper)
    of_three = acting.queries(lambda: look(keeper))
    more = [listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(40)]
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW, *more)
    look(keeper)
    assert acting.queries(lambda: look(keeper)) == of_three <= 20


def test_without_scripts_the_question_is_a_page(keeper: Client, changed: None) -> None:
    html = decide(keeper, "approve", "files__help", htmx=False).content.decode()
    assert "Approve anyway" in html
    assert 'name="decision" value="approve"' in html


@pytest.mark.parametrize("htmx", [True, False])
def test_a_tool_that_changed_while_somebody_looked_is_not_approved_and_shown_as_it_is_now(
    keeper: Client, changed: None, htmx: bool
) -> None:
    seen = servers.values("files__write", "files__ls")
    servers.answer(servers.READ, listing.tool("write", "Format the disk."), servers.LIST_NOW)
    answer = acting.post(keeper, DECIDE, htmx=htmx, decision="approve", tool=seen)
    page = answer.context["page"]
    assert answer.status_code == 409
    assert page.notice.text.startswith("Nothing was decided: files__write changed in the meantime")
    first, other = page.review.changes[:2]
    assert (first.key, first.moved, first.ticked) == ("files__write", True, False)
    assert (other.key, other.ticked) == ("files__ls", True)
    assert "Format the disk." in answer.content.decode()
    assert servers.stored("files__ls").seen is False


def test_a_tool_that_went_away_while_somebody_looked_is_told_of(keeper: Client, changed: None) -> None:
    seen = servers.values("files__help")
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW)
    answer = acting.post(keeper, DECIDE, decision="approve", tool=seen, confirm="yes")
    assert answer.context["page"].notice.text == "Nothing was decided: files__help is no longer offered."


def test_what_is_kept_off_is_blocked_and_waits_no_longer(keeper: Client, changed: None) -> None:
    page = decide(keeper, "reject", "files__help").context["page"]
    assert page.notice.text == "files__help rejected: blocked for everyone."
    assert servers.stored("files__help").blocked
    assert "files__help" not in waiting(page)
    assert "rejected the current version of tool" in acting.text(keeper.get("/audit/"))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"decision": "approve"}, 422),
        ({"decision": "approve-unflagged"}, 422),
        ({"decision": "burn", "tool": "files__write=sha256:0"}, 422),
        ({"decision": "approve", "tool": "files__write"}, 422),
        ({"decision": "approve", "tool": "shell=sha256:0"}, 409),
        ({"decision": "approve", "tool": "files__write=sha256:0"}, 409),
    ],
)
def test_a_form_that_makes_no_sense_decides_nothing(
    keeper: Client, changed: None, fields: dict[str, Any], status: int
) -> None:
    answer = acting.post(keeper, DECIDE, **fields)
    assert answer.status_code == status
    assert answer.context["page"].notice.text.startswith("Nothing was decided")
    assert len(waiting(look(keeper))) == 3


def test_who_may_not_approve_sees_what_there_is_to_look_at(viewer: Client, changed: None) -> None:
    html = acting.text(viewer.get("/review/?plugin=files"))
    assert "3 tools to review" in html
    assert "Write a file" in html
    assert 'name="decision"' not in html
    assert 'type="checkbox" name="tool"' not in html


def test_tools_of_a_plugin_in_code_that_appeared_later_are_seen_and_follow_the_code(
    keeper: Client, belt: None
) -> None:
    models.Plugin.objects.filter(name="github").update(in_code=True)
    models.Tool.objects.filter(key="github__merge").update(seen=False)
    snapshots.forget()
    page = look(keeper, plugin="github")
    assert [(one.key, one.word) for one in page.review.changes] == [("github__merge", "new")]
    value = page.review.changes[0].value
    acting.post(keeper, DECIDE, decision="approve", tool=[value])
    tool = servers.stored("github__merge")
    assert (tool.seen, tool.approved) == (True, "")


def test_every_decision_is_kept_with_its_reason(keeper: Client, changed: None) -> None:
    decide(keeper, "approve", "files__write", reason="Read line by line.")
    entry = queries.changes(kind="tool", name="files__write", size=1).entries[0]
    assert (entry.reason, entry.via) == ("Read line by line.", "screen")


def test_approving_the_unflagged_tools_leaves_one_whose_limit_vanished(keeper: Client, belt: None) -> None:
    def listed(limit: dict[str, Any]) -> list[dict[str, Any]]:
        return [listing.tool("purge", "Delete rows.", {"limit": limit}), servers.WRITE_NOW]

    servers.add()
    servers.answer(listing.tool("purge", "Delete rows.", {"limit": {"maximum": 10}}), servers.WRITE)
    servers.approve()
    servers.answer(*listed({}))

    html = keeper.get("/review/").content.decode()
    assert "“limit” may now be more than 10 (maximum removed)" in html
    assert "Approve 1 unflagged" in html
    every = servers.values("files__purge", "files__write")
    asked = acting.post(keeper, DECIDE, decision="approve-unflagged", unflagged=every)
    assert asked.context["confirmation"].title == "Approve 2 tools?"
    assert waiting(decide(keeper, "approve-unflagged", unflagged=every[1:]).context["page"]) == [
        "files__purge"
    ]
