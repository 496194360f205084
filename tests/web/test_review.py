"""Tests of the Review page: what awaits review, and that only the displayed versions are approved."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.plugins.upstream import listing
from tests.web import dashboard, servers
from toolbelt import models
from toolbelt.control import drafts, trials, writing
from toolbelt.control.reports import queries
from toolbelt.control.servers import decisions, upstream_servers
from toolbelt.core import errors
from toolbelt.store import snapshots
from toolbelt.web.review import views

pytestmark = pytest.mark.django_db

DECIDE = "/review/decide/"


@pytest.fixture
def changed(belt: None) -> None:
    """Store a server that changed after approval, and an override for one of its renamed tools."""
    servers.changed()
    models.ToolOverride.objects.create(
        agent=factories.agent("dee"), tool=models.Tool.objects.get(key="files__list"), on=False
    )


def open_page(browser: Client, **query: Any) -> Any:
    """Return the view model of the page."""
    return browser.get("/review/", {"plugin": "files", **query}).context["page"]


def change(page: Any, key: str) -> Any:
    return next(change for change in page.review.changes if change.key == key)


def decide(browser: Client, decision: str, *keys: str, htmx: bool = True, **fields: Any) -> Any:
    given = {"decision": decision, "tool": servers.values(*keys), "plugin": "files"}
    return dashboard.post(browser, DECIDE, htmx=htmx, **given | fields)


def waiting(page: Any) -> list[str]:
    return [change.key for change in page.review.changes]


def test_flagged_tools_are_listed_before_changed_and_renamed_tools(
    plugin_manager: Client, changed: None
) -> None:
    review = open_page(plugin_manager).review
    assert [(change.key, change.word) for change in review.changes] == [
        ("files__help", "new"),
        ("files__write", "changed"),
        ("files__ls", "renamed"),
    ]
    assert (review.flagged, review.unflagged, review.renamed, review.later) == (1, 2, True, 0)


def test_a_changed_tool_is_compared_with_its_approved_version(plugin_manager: Client, changed: None) -> None:
    write = change(open_page(plugin_manager), "files__write")
    described, arguments = write.differences
    assert (described.label, arguments.label) == ("Description", "Arguments")
    old, new = described.text.lines
    assert (old.sign, new.sign) == ("−", "+")
    assert [piece.text for piece in new.pieces if piece.tone == "changed"] == [", or a link"]
    assert arguments.notes == ("new optional argument mode",)
    assert "+" in {line.sign for line in arguments.text.lines}
    assert write.delta.startswith("+")
    assert not write.flags


def test_a_renamed_tool_shows_its_old_name_and_the_agents_using_it(
    plugin_manager: Client, changed: None
) -> None:
    renamed = change(open_page(plugin_manager), "files__ls")
    assert "The same tool as files__list" in renamed.about
    assert renamed.users == "used by agent dee under its old name"


def test_hostile_texts_are_escaped_and_flagged(plugin_manager: Client, changed: None) -> None:
    html = plugin_manager.get("/review/").content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\u202e" not in html
    assert '<span class="hidden-sign" title="right-to-left override">U+202E</span>' in html
    flags = [
        "".join(piece.text for piece in flag)
        for flag in change(open_page(plugin_manager), "files__help").flags
    ]
    assert any(flag.startswith("overrules instructions: ") for flag in flags)
    assert "contains invisible characters" in flags


def test_a_repaired_tool_shows_its_repairs(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(
        {**listing.tool("read"), "inputSchema": {"required": None, "properties": {"a": {"type": "int"}}}}
    )

    read = change(open_page(plugin_manager), "files__read")

    assert (len(read.flags), len(read.repairs)) == (1, 1)
    assert "Repaired schema" in plugin_manager.get("/review/").content.decode()


def test_a_tool_shows_what_providers_would_refuse(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(listing.tool("read", "Read. " * 200))

    read = change(open_page(plugin_manager), "files__read")

    assert (len(read.flags), len(read.providers)) == (0, 1)
    assert "Providers of models" in plugin_manager.get("/review/").content.decode()


@pytest.mark.parametrize("htmx", [True, False])
def test_only_the_selected_tools_are_approved(plugin_manager: Client, changed: None, htmx: bool) -> None:
    response = decide(plugin_manager, "approve", "files__write", htmx=htmx, confirm="yes")
    assert response.status_code == (200 if htmx else 303)
    page = response.context["page"] if htmx else open_page(plugin_manager)
    assert page.notice.text == "files__write approved."
    assert waiting(page) == ["files__help", "files__ls"]
    assert servers.stored("files__write").description == "Write a file, or a link."
    assert dashboard.latest_entry().actor == "kim"


def test_an_htmx_approval_returns_parts_of_the_page(plugin_manager: Client, changed: None) -> None:
    html = dashboard.text(decide(plugin_manager, "approve", "files__write", confirm="yes"))
    assert "<html" not in html
    assert '<div id="review" hx-swap-oob="innerHTML">' in html
    assert '<div id="live" hx-swap-oob="innerHTML">files__write approved.' in html


def test_an_approval_of_several_tools_is_undone_as_a_whole(plugin_manager: Client, changed: None) -> None:
    page = decide(plugin_manager, "approve", "files__write", "files__ls", carry="yes", confirm="yes").context[
        "page"
    ]
    # The override now applies to both names.
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False, "files__ls": False}
    undone = dashboard.post(plugin_manager, f"/audit/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert undone.status_code == 303
    assert waiting(open_page(plugin_manager)) == ["files__help", "files__write", "files__ls"]
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_a_renamed_tool_does_not_carry_settings_over_unless_requested(
    plugin_manager: Client, changed: None
) -> None:
    decide(plugin_manager, "approve", "files__ls")
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_carrying_settings_over_requires_permission_to_change_agents(
    plugin_manager: Client, changed: None
) -> None:
    auth.User.objects.get(username="kim").user_permissions.remove(
        auth.Permission.objects.get(codename="change_agent")
    )
    assert not open_page(plugin_manager).review.may_carry
    decide(plugin_manager, "approve", "files__ls", carry="yes")
    assert snapshots.find("dee", None).agent.overrides == {"files__list": False}


def test_approving_flagged_tools_requires_confirmation(plugin_manager: Client, changed: None) -> None:
    every = servers.values("files__write", "files__ls", "files__help")
    response = dashboard.post(plugin_manager, DECIDE, decision="approve", tool=every)
    question = response.context["confirmation"]
    assert question.title == "Approve 3 tools?"
    assert any("files__help: overrules instructions" in reason for reason in question.reasons)
    assert len(waiting(open_page(plugin_manager))) == 3
    again = {name: value for name, value in question.fields if name != "tool"}
    dashboard.post(plugin_manager, DECIDE, tool=every, **again)
    assert waiting(open_page(plugin_manager)) == []


def test_a_draft_of_flagged_tools_is_applied_and_scheduled_only_if_confirmed(
    plugin_manager: Client, changed: None
) -> None:
    every = servers.values("files__help")
    dashboard.post(
        plugin_manager, "/review/drafts/save/", htmx=True, draft_of=DECIDE, decision="approve", tool=every
    )
    [draft] = drafts.listed()
    address = f"/review/drafts/{draft.key}"
    at = (timezone.now() + dt.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")
    acts: dict[str, dict[str, Any]] = {"apply": {}, "schedule": {"at": at}}
    for act, fields in acts.items():
        question = dashboard.post(plugin_manager, f"{address}/{act}/", **fields).context["confirmation"]
        assert any("files__help: overrules instructions" in reason for reason in question.reasons)
        assert not any("\u202e" in reason for reason in question.reasons)
    assert "files__help" in waiting(open_page(plugin_manager))
    assert trials.latest(draft.key) is None

    dashboard.post(plugin_manager, f"{address}/apply/", confirm="yes")

    assert "files__help" not in waiting(open_page(plugin_manager))


def test_a_draft_of_an_approval_asks_about_the_agents_that_get_the_tools(
    plugin_manager: Client, changed: None
) -> None:
    factories.loadout("all-files", plugins=["files"])
    factories.agent("gus", loadout="all-files")
    shown = {change.key: change.value for change in open_page(plugin_manager).review.changes}
    versions = {key: shown[key].partition("=")[2] for key in ("files__write", "files__ls")}
    write = writing.by("setup", via="screen")
    draft = drafts.save(write, lambda write: decisions.approve(write, versions, carry_over=False))

    with pytest.raises(errors.ConfirmationRequired) as raised:
        drafts.apply(write, draft.key)

    assert any(reason.startswith("gus gets: ") for reason in raised.value.reasons)
    assert raised.value.differences["added"] == ["files__ls", "files__write"]


def test_approving_unflagged_tools_skips_flagged_tools(plugin_manager: Client, changed: None) -> None:
    html = plugin_manager.get("/review/?plugin=files").content.decode()
    assert "Approve 2 unflagged" in html
    assert f'name="unflagged" value="{servers.values("files__help")[0]}"' not in html
    shown = servers.values("files__write", "files__ls")
    assert all(f'name="unflagged" value="{value}"' in html for value in shown)
    page = decide(plugin_manager, "approve-unflagged", unflagged=shown, confirm="yes").context["page"]
    assert page.notice.text == "2 tools approved."
    assert waiting(page) == ["files__help"]


def test_approving_several_tools_first_shows_the_agents_that_get_them(
    plugin_manager: Client, changed: None
) -> None:
    factories.loadout("all-files", plugins=["files"])
    factories.agent("gus", loadout="all-files", max_tools=2)
    shown = servers.values("files__write", "files__ls")
    question = decide(plugin_manager, "approve-unflagged", unflagged=shown).context["confirmation"]
    assert (question.title, question.confirm_word) == ("Approve 2 tools?", "Approve 2 tools")
    assert [difference.label for difference in question.differences] == ["gus"]
    assert question.facts == ("Available on request to 1 agent: bob.",)
    assert (question.effect.tools, question.dangerous) == ((1, 3), True)
    assert question.reasons == (
        "Enables 2 tools that may be destructive, for gus.",
        "gus is over budget afterwards.",
    )
    assert waiting(open_page(plugin_manager)) == ["files__help", "files__write", "files__ls"]
    page = decide(plugin_manager, "approve-unflagged", unflagged=shown, confirm="yes").context["page"]
    assert page.notice.text == "2 tools approved."


def test_approving_a_single_new_tool_that_writes_first_shows_the_agents_that_get_it(
    plugin_manager: Client, changed: None
) -> None:
    models.Tool.objects.filter(key="files__write").update(seen=False, approved="", approved_version=None)
    snapshots.forget()
    factories.loadout("all-files", plugins=["files"])
    factories.agent("gus", loadout="all-files")
    # The button of a row, as the key a presses it.
    (value,) = servers.values("files__write")
    question = decide(plugin_manager, f"approve:{value}").context["confirmation"]
    assert (question.title, question.confirm_word) == ("Approve files__write?", "Approve files__write")
    assert [difference.label for difference in question.differences] == ["gus"]
    assert question.facts == ("Available on request to 1 agent: bob.",)
    assert "files__write" in waiting(open_page(plugin_manager))


def test_approving_a_single_tool_that_only_reads_names_the_agents_that_have_it(
    plugin_manager: Client, changed: None
) -> None:
    models.Tool.objects.filter(key="files__write").update(annotations={"readOnlyHint": True})
    snapshots.forget()
    factories.loadout("all-files", plugins=["files"])
    factories.agent("gus", loadout="all-files")
    (value,) = [
        change.value for change in open_page(plugin_manager).review.changes if change.key == "files__write"
    ]
    page = decide(plugin_manager, f"approve:{value}").context["page"]
    assert page.notice.text == "files__write approved."
    assert page.notice.detail == "Applies from the next request. It is on for gus and on request for bob."


def test_an_approval_does_not_warn_of_a_budget_that_it_does_not_worsen(
    plugin_manager: Client, changed: None
) -> None:
    models.Agent.objects.filter(key="bob").update(max_tools=0)
    snapshots.forget()
    question = decide(plugin_manager, "approve", "files__write", "files__ls").context["confirmation"]
    assert question.facts == ("Available on request to 1 agent: bob.",)
    assert not any("over budget" in reason for reason in question.reasons)


def test_a_flagged_tool_submitted_as_unflagged_requires_confirmation(
    plugin_manager: Client, changed: None
) -> None:
    sent = servers.values("files__help")
    response = dashboard.post(plugin_manager, DECIDE, decision="approve-unflagged", unflagged=sent)
    assert response.context["confirmation"].title == "Approve files__help?"


def test_a_rows_button_decides_only_that_row_and_keeps_the_selection(
    plugin_manager: Client, changed: None
) -> None:
    (value,) = servers.values("files__write")
    page = decide(plugin_manager, f"approve:{value}", "files__ls", confirm="yes").context["page"]
    assert page.notice.text == "files__write approved."
    assert [(change.key, change.ticked) for change in page.review.changes] == [
        ("files__help", False),
        ("files__ls", True),
    ]
    (value,) = servers.values("files__ls")
    assert (
        decide(plugin_manager, f"reject:{value}").context["page"].notice.text.startswith("files__ls rejected")
    )


def test_tools_of_several_plugins_are_approved_and_undone_together(
    plugin_manager: Client, changed: None
) -> None:
    servers.add("mail")
    servers.answer(servers.READ, name="mail")
    both = [*servers.values("files__write"), *servers.values("mail__read", name="mail")]
    page = plugin_manager.get("/review/").context["page"]
    assert {"files__write", "mail__read"} <= set(waiting(page))
    assert {choice.value: choice.count for choice in page.review.plugins}["mail"] == 1
    page = dashboard.post(plugin_manager, DECIDE, decision="approve", tool=both, confirm="yes").context[
        "page"
    ]
    assert page.notice.text == "2 tools approved."
    dashboard.post(plugin_manager, f"/audit/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert {"files__write", "mail__read"} <= set(waiting(plugin_manager.get("/review/").context["page"]))


def test_other_concerns_match_those_of_the_overview(plugin_manager: Client, changed: None) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed", error="It <b>broke</b>.")
    models.Agent.objects.filter(key="ada").update(max_tools=0, on_exceed="warn")
    models.Tool.objects.filter(key__in=["shell", "papers"]).update(blocked=True)
    snapshots.forget()
    overview = [concern.title for concern in plugin_manager.get("/").context["page"].concerns]
    page = plugin_manager.get("/review/").context["page"]
    here = [concern.title for concern in page.concerns]
    blocked = ["Tool papers is blocked for everyone", "Tool shell is blocked for everyone"]
    assert {"GitHub has failed", "ada: over budget", *blocked} <= set(here)
    assert [title for title in here if "Tool " not in title] == [
        title for title in overview if "review" not in title and "blocked" not in title
    ]
    assert "2 entries blocked for everyone" in overview
    assert page.concerns_total == len(here)


def test_hundreds_of_new_tools_are_reviewed_in_batches(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(*[listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(130)])
    page, most = open_page(plugin_manager), views.MAX_AT_ONCE
    assert (len(page.review.changes), page.review.later) == (most, 130 - most)
    every = [change.value for change in page.review.changes]
    page = decide(plugin_manager, "approve-unflagged", unflagged=every, confirm="yes").context["page"]
    assert page.notice.text == f"{most} tools approved."
    assert page.review.later == 130 - 2 * most


def test_query_count_does_not_grow_with_the_number_of_tools_to_review(
    plugin_manager: Client, changed: None
) -> None:
    open_page(plugin_manager)
    of_three = dashboard.count_queries(lambda: open_page(plugin_manager))
    more = [listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(40)]
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW, *more)
    open_page(plugin_manager)
    assert dashboard.count_queries(lambda: open_page(plugin_manager)) == of_three <= 20


def test_without_htmx_the_confirmation_is_a_page(plugin_manager: Client, changed: None) -> None:
    html = decide(plugin_manager, "approve", "files__help", htmx=False).content.decode()
    assert "Approve anyway" in html
    assert 'name="decision" value="approve"' in html


@pytest.mark.parametrize("htmx", [True, False])
def test_a_tool_that_changed_during_the_review_is_not_approved(
    plugin_manager: Client, changed: None, htmx: bool
) -> None:
    seen = servers.values("files__write", "files__ls")
    servers.answer(servers.READ, listing.tool("write", "Format the disk."), servers.LIST_NOW)
    response = dashboard.post(plugin_manager, DECIDE, htmx=htmx, decision="approve", tool=seen, confirm="yes")
    page = response.context["page"]
    assert response.status_code == 409
    assert page.notice.text.startswith("Nothing was decided: files__write changed in the meantime")
    first, other = page.review.changes[:2]
    assert (first.key, first.moved, first.ticked) == ("files__write", True, False)
    assert (other.key, other.ticked) == ("files__ls", True)
    assert "Format the disk." in response.content.decode()
    assert servers.stored("files__ls").seen is False


def test_a_tool_that_changed_during_the_review_is_reported_before_the_question(
    plugin_manager: Client, changed: None
) -> None:
    seen = servers.values("files__write", "files__ls")
    servers.answer(servers.READ, listing.tool("write", "Format the disk."), servers.LIST_NOW)
    response = dashboard.post(plugin_manager, DECIDE, decision="approve", tool=seen)
    assert response.status_code == 409
    assert "confirmation" not in response.context
    assert response.context["page"].review.changes[0].key == "files__write"


def test_a_tool_removed_during_the_review_is_reported(plugin_manager: Client, changed: None) -> None:
    seen = servers.values("files__help")
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW)
    response = dashboard.post(plugin_manager, DECIDE, decision="approve", tool=seen, confirm="yes")
    assert response.context["page"].notice.text == "Nothing was decided: files__help is no longer offered."


def test_a_rejected_tool_is_blocked_and_leaves_the_review(plugin_manager: Client, changed: None) -> None:
    page = decide(plugin_manager, "reject", "files__help").context["page"]
    assert page.notice.text == "files__help rejected: blocked for everyone."
    assert servers.stored("files__help").blocked
    assert "files__help" not in waiting(page)
    assert "rejected tool" in dashboard.text(plugin_manager.get("/audit/"))


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
def test_an_invalid_form_decides_nothing(
    plugin_manager: Client, changed: None, fields: dict[str, Any], status: int
) -> None:
    response = dashboard.post(plugin_manager, DECIDE, **fields)
    assert response.status_code == status
    assert response.context["page"].notice.text.startswith("Nothing was decided")
    assert len(waiting(open_page(plugin_manager))) == 3


def test_a_viewer_sees_tools_to_review_without_controls(viewer: Client, changed: None) -> None:
    html = dashboard.text(viewer.get("/review/?plugin=files"))
    assert "3 tools to review" in html
    assert "Write a file" in html
    assert 'name="decision"' not in html
    assert 'type="checkbox" name="tool"' not in html


def test_approving_a_code_plugins_tool_pins_no_version(plugin_manager: Client, belt: None) -> None:
    models.Plugin.objects.filter(name="github").update(in_code=True)
    models.Tool.objects.filter(key="github__merge").update(seen=False)
    snapshots.forget()
    page = open_page(plugin_manager, plugin="github")
    assert [(change.key, change.word) for change in page.review.changes] == [("github__merge", "new")]
    value = page.review.changes[0].value
    dashboard.post(plugin_manager, DECIDE, decision="approve", tool=[value], confirm="yes")
    tool = servers.stored("github__merge")
    assert (tool.seen, tool.approved) == (True, "")


def test_a_decision_is_logged_with_its_reason(plugin_manager: Client, changed: None) -> None:
    decide(plugin_manager, "approve", "files__write", reason="Read line by line.", confirm="yes")
    entry = queries.changes(kind="tool", name="files__write", size=1).entries[0]
    assert (entry.reason, entry.via) == ("Read line by line.", "screen")


def test_approving_unflagged_tools_skips_a_tool_whose_limit_was_removed(
    plugin_manager: Client, belt: None
) -> None:
    def listed(limit: dict[str, Any]) -> list[dict[str, Any]]:
        return [listing.tool("purge", "Delete rows.", {"limit": limit}), servers.WRITE_NOW]

    servers.add()
    servers.answer(listing.tool("purge", "Delete rows.", {"limit": {"maximum": 10}}), servers.WRITE)
    servers.approve()
    servers.answer(*listed({}))

    html = plugin_manager.get("/review/").content.decode()
    assert "“limit” may now be more than 10 (maximum removed)" in html
    assert "Approve 1 unflagged" in html
    every = servers.values("files__purge", "files__write")
    confirmation = dashboard.post(plugin_manager, DECIDE, decision="approve-unflagged", unflagged=every)
    assert confirmation.context["confirmation"].title == "Approve 2 tools?"
    answer = decide(plugin_manager, "approve-unflagged", unflagged=every[1:], confirm="yes")
    assert waiting(answer.context["page"]) == ["files__purge"]


def test_the_approved_description_of_a_changed_tool_is_kept_until_that_is_undone(
    plugin_manager: Client, belt: None
) -> None:
    servers.add()
    servers.answer(servers.READ, servers.WRITE)
    servers.approve()
    servers.answer({**servers.READ, "description": "Read a file of web-7."}, servers.WRITE_NOW)
    page = open_page(plugin_manager)
    assert {line.key: line.can_keep for line in page.review.changes} == {
        "files__read": True,
        "files__write": False,
    }

    page = decide(plugin_manager, "keep", "files__read").context["page"]

    assert waiting(page) == ["files__write"]
    assert servers.stored("files__read").description == "Read a file."
    assert servers.stored("files__read").keep_description
    dashboard.post(plugin_manager, f"/audit/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert waiting(open_page(plugin_manager)) == ["files__read", "files__write"]
    assert not servers.stored("files__read").keep_description


def test_a_description_is_not_kept_if_more_than_that_changed(plugin_manager: Client, changed: None) -> None:
    response = decide(plugin_manager, "keep", "files__write")
    assert response.status_code == 422
    assert "files__write has no other approved description to keep" in response.context["page"].notice.text
    assert not servers.stored("files__write").keep_description


def test_a_tool_that_differs_between_processes_is_flagged(plugin_manager: Client, belt: None) -> None:
    servers.add()
    servers.answer(servers.READ)
    servers.approve()
    other = {**servers.READ, "description": "Read a file of web-7."}
    servers.answer(other, again=(upstream_servers.ServerListing(tools=(servers.READ,)),))

    (line,) = open_page(plugin_manager).review.changes

    assert (line.word, len(line.flags), line.can_keep) == ("differs between processes", 1, True)
