"""Tests of the list of loadouts, a loadout's page, and its editor."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.web import dashboard, editor_forms
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.runtime import surfaces
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

HOUSE, EDIT, SAVE = "/loadouts/house/", "/loadouts/house/edit/", "/loadouts/house/save/"
NEW, CREATE = "/new/loadout/", "/new/loadout/save/"


@pytest.fixture(autouse=True)
def house(belt: None) -> None:
    """Store the loadout house, which extends the built-in minimal, for ada."""
    factories.loadout(
        "house", parent="minimal", plugins=["github"], discoverable=["clock*"], disabled=["github__merge"]
    )
    models.Agent.objects.filter(key="ada").update(loadout="house")


@pytest.fixture
def editor(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user with all permissions for loadouts."""
    codenames = [f"{act}_loadout" for act in ("add", "change", "delete")]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=codenames))
    return operator


def open_page(browser: Client, address: str = HOUSE) -> Any:
    return browser.get(address).context["page"]


def test_stored_and_built_in_loadouts_are_listed_with_their_agents(viewer: Client) -> None:
    page = open_page(viewer, "/loadouts/")
    house, *built_in = page.loadouts
    assert (house.loadout.name, house.parent, house.tools, house.used, house.percent) == (
        "house",
        "minimal",
        2,
        ("ada",),
        50,
    )
    text = editor_forms.visible_text(viewer.get("/loadouts/"))
    assert "plugins github on request clock* disables github__merge 2 tools" in text
    assert [line.loadout.name for line in built_in] == ["minimal", "developer", "research", "devops", "full"]
    # Both use a loadout that extends minimal.
    assert built_in[0].used == ("ada", "bob")
    assert built_in[1].used == ("bob",)
    assert "6 loadouts, 5 of them built in" in text


def test_the_diagram_has_a_box_per_loadout_and_a_line_per_extension(viewer: Client) -> None:
    picture = open_page(viewer, "/loadouts/").picture
    boxes = {node.box.name: (node.box.x, node.box.y, node.built_in) for node in picture.nodes}
    assert boxes["minimal"][0] == boxes["full"][0] < boxes["house"][0] == boxes["developer"][0]
    assert len({box[:2] for box in boxes.values()}) == 6
    assert len(picture.lines) == 4
    assert (boxes["house"][2], boxes["minimal"][2]) == (False, True)
    html = dashboard.text(viewer.get("/loadouts/"))
    assert "house extends minimal." in html
    assert "minimal extends nothing." in html


def test_the_picture_marks_the_loadout_of_the_page(viewer: Client) -> None:
    def marked(address: str) -> list[str]:
        lines = viewer.get(address).content.decode().splitlines()
        return [line for line in lines if "picture-box" in line and 'aria-current="page"' in line]

    [current] = marked("/loadouts/minimal/")
    assert 'aria-label="minimal' in current
    assert marked("/loadouts/") == []


def test_a_cycle_of_loadouts_does_not_break_the_pages(viewer: Client) -> None:
    factories.loadout("chicken", parent="egg")
    factories.loadout("egg", parent="chicken")
    picture = open_page(viewer, "/loadouts/").picture
    assert {node.box.name for node in picture.nodes} >= {"chicken", "egg"}
    assert viewer.get("/loadouts/egg/").status_code == 200


def test_the_page_shows_each_levels_changes_and_each_tools_origin(viewer: Client) -> None:
    page = open_page(viewer)
    assert [(level.loadout.name, level.changes, level.added) for level in page.levels] == [
        ("minimal", "no change in tools", ()),
        ("house", "+2 tools", ("github__issue_read", "github__issue_write")),
    ]
    assert [(group.title, group.because, group.tools) for group in page.included] == [
        ("GitHub", "plugin of house", ("github__issue_read", "github__issue_write"))
    ]
    # Disabling a tool takes precedence over the * of minimal.
    assert [(group.title, group.key, group.tools) for group in page.on_request] == [
        ("Clock", "acme.clock", ("clock__now",)),
        ("No plugin", "", ("papers", "shell")),
    ]
    assert page.agents == [("ada", "its own loadout")]


def test_a_built_in_loadouts_page_lists_its_kinds_loadouts_and_sub_apps(viewer: Client) -> None:
    factories.loadout("annex", parent="Developer")
    factories.sub_app("chat", agents=(models.Agent.objects.get(key="bob"),))
    models.Agent.objects.filter(key="ada").update(session_loadouts=["developer"])
    page = open_page(viewer, "/loadouts/developer/")
    assert page.agents == [
        ("ada", "may use it for a session"),
        ("bob", "from its kind plan"),
    ]
    assert [(name, how) for _, name, how in page.others] == [
        ("annex", "a loadout that extends it"),
        ("chat", "sub-app, through bob"),
    ]
    assert page.kinds == ("plan", "review")
    assert not page.is_stored


def test_a_viewer_sees_no_controls(viewer: Client) -> None:
    html = dashboard.text(viewer.get(HOUSE))
    assert "view only" in html
    assert "/edit/" not in html
    assert "Remove" not in html
    assert "/order/" not in dashboard.text(viewer.get("/loadouts/"))
    assert viewer.get(EDIT).status_code == 403
    assert viewer.get(NEW).status_code == 403


def test_a_built_in_loadout_can_be_copied_but_not_edited(editor: Client) -> None:
    html = dashboard.text(editor.get("/loadouts/minimal/"))
    assert "/loadouts/minimal/edit/" not in html
    assert "/new/loadout/?from=minimal" in html
    assert editor.get("/loadouts/minimal/edit/").status_code == 404
    form = open_page(editor, "/new/loadout/?from=developer").form
    assert form["parent"].value() == "minimal"
    assert set(form["categories"].value()) == {"git", "github", "search", "analysis", "memory"}
    assert form["discoverable"].value() == "docker*\nmcp*"


def test_saving_previews_the_affected_agents_before_applying(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, disabled="github__merge\r\ngithub__issue_write")
    page = response.context["page"]
    assert response.status_code == 200
    assert [(difference.label, difference.before, difference.after) for difference in page.differences] == [
        ("disabled", "", "github__issue_write")
    ]
    assert [(one.agent.key, one.effect.removed, effect.tools) for one, effect in page.consequences] == [
        ("ada", ("github__issue_write",), (3, 2))
    ]
    assert "This changes what 1 of 2 agents gets from its next request." in dashboard.text(response)
    assert models.AuditEntry.objects.count() == 0

    response = editor_forms.resubmit(editor, response, SAVE, reason="Nobody files issues here.")
    assert (response.status_code, response.headers["Location"]) == (303, HOUSE)
    entry = dashboard.latest_entry()
    assert (entry.action, entry.subject_key, entry.reason) == (
        "loadout.change",
        "house",
        "Nobody files issues here.",
    )
    assert entry.after == {"disabled": ["github__merge", "github__issue_write"]}
    notice = open_page(editor).notice
    assert (notice.text, notice.undo) == ("Loadout house saved.", entry.pk)
    dashboard.post(editor, f"/audit/{entry.pk}/undo/", htmx=False)
    assert entries.read("loadout", "house")["disabled"] == ["github__merge"]


def test_with_htmx_the_preview_is_a_dialog_over_the_form(editor: Client) -> None:
    send = partial(editor_forms.submit, editor, EDIT, SAVE, htmx=True)
    preview = send(disabled="github__merge\r\ngithub__issue_write", tools="github__merge", cells="")
    assert preview.headers["HX-Reswap"] == "none"
    assert dashboard.text(preview).strip().startswith('<div id="dialog" hx-swap-oob="innerHTML">')
    assert "<html" not in dashboard.text(preview)
    fields = {name for name, _ in preview.context["page"].fields}
    assert {"disabled", "was", "shown"} <= fields
    assert not {"tools", "cells", "csrfmiddlewaretoken"} & fields
    assert models.AuditEntry.objects.count() == 0

    done = editor_forms.resubmit(editor, preview, SAVE, htmx=True)
    assert (done.status_code, done.headers["HX-Redirect"]) == (200, HOUSE)
    assert open_page(editor).notice.text == "Loadout house saved."


def test_with_htmx_a_rejected_form_replaces_the_dialog(editor: Client) -> None:
    preview = editor_forms.submit(editor, EDIT, SAVE, htmx=True, disabled="github__issue_write")
    entries.change(OPERATOR, "loadout", "house", {"disabled": ["shell"]})
    refused = editor_forms.resubmit(editor, preview, SAVE, htmx=True)
    html = dashboard.text(refused)
    assert refused.status_code == 409
    assert "HX-Reswap" not in refused.headers
    assert "<html" not in html
    assert "was changed by another operator" in html
    assert '<div id="dialog" hx-swap-oob="innerHTML"></div>' in html
    assert 'id="dialog"' not in dashboard.text(editor.get(EDIT)).partition("<main")[2].partition("</main>")[0]


def test_with_htmx_removing_a_loadout_redirects_or_reports_its_users(editor: Client) -> None:
    factories.loadout("annex", parent="minimal")
    removed = "/loadouts/annex/remove/"
    done = editor_forms.submit(editor, "/loadouts/annex/", removed, htmx=True)
    assert (done.status_code, done.headers["HX-Redirect"]) == (200, "/loadouts/")
    refused = editor_forms.submit(editor, HOUSE, "/loadouts/house/remove/", htmx=True)
    assert (refused.status_code, refused.headers["HX-Redirect"]) == (200, HOUSE)
    assert "used by the agent ada" in open_page(editor).notice.text


def test_saving_an_untouched_form_changes_nothing(editor: Client) -> None:
    # An order, case and names that checkboxes cannot represent.
    models.Loadout.objects.filter(name="house").update(
        plugins=["GitHub", "elsewhere"], categories=["web", "Git"], description="Two\r\nlines.\n"
    )
    before = entries.read("loadout", "house")
    response = editor_forms.submit(editor, EDIT, SAVE)
    assert response.status_code == 303
    assert open_page(editor).notice.text == "No changes: the loadout house is already up to date."
    assert entries.read("loadout", "house") == before


def test_a_change_without_effect_on_agents_is_saved_without_preview(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, description="Of the house.")
    assert response.status_code == 303
    notice = open_page(editor).notice
    assert notice.detail == "No agent is affected."


def test_a_changed_effect_must_be_reviewed_again_before_saving(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, disabled="github__issue_read")
    dashboard.override(editor, "github__issue_read", "false", "unset")
    response = editor_forms.resubmit(editor, response, SAVE)
    assert response.context["page"].is_repeated
    assert "Review again." in dashboard.text(response)
    assert editor_forms.resubmit(editor, response, SAVE).status_code == 303


def test_returning_from_the_preview_keeps_the_form_input(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, disabled="github__issue_read")
    back = editor_forms.resubmit(editor, response, SAVE, again="yes")
    assert back.context["page"].form["disabled"].value() == "github__issue_read"
    assert editor_forms.resubmit(editor, back, SAVE).context["page"].consequences


def test_errors_are_shown_at_their_field(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, categories=["gti"], disabled="github", parent="hous")
    wrong = response.context["page"].form.errors
    assert response.status_code == 422
    assert wrong["parent"][0].startswith("There is no loadout named 'hous'. Did you mean house?")
    assert wrong["categories"][0].startswith("There is no category named 'gti'.")
    assert "in both 'plugins' and 'disabled'" in wrong["disabled"][0]
    assert "Not saved." in dashboard.text(response)


def test_a_change_refused_by_a_budget_is_rejected_without_preview(editor: Client) -> None:
    has = len(surfaces.ask("ada").because)
    budget = {"max_tools": has, "on_exceed": "refuse"}
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"budget": budget})
    before = entries.read("loadout", "house")
    response = editor_forms.submit(editor, EDIT, SAVE, disabled="")
    assert response.status_code == 422
    assert (
        f"The budget of ada is {has} tools; this change would result in {has + 1} tools"
        in editor_forms.visible_text(response)
    )
    assert entries.read("loadout", "house") == before


def test_concurrent_edits_of_the_same_field_conflict(editor: Client) -> None:
    sent = editor_forms.form(editor.get(EDIT).content.decode(), SAVE)
    entries.change(OPERATOR, "loadout", "house", {"disabled": ["shell"]})
    entries.change(OPERATOR, "loadout", "house", {"description": "Theirs."})
    sent["disabled"] = "papers"
    response = editor.post(SAVE, sent.urlencode(), content_type="application/x-www-form-urlencoded")
    assert response.status_code == 409
    assert "was changed by another operator" in dashboard.text(response)
    assert entries.read("loadout", "house")["disabled"] == ["shell"]


def test_a_loadout_is_created_removed_and_restored_by_undo(editor: Client) -> None:
    assert editor_forms.submit(editor, NEW, CREATE).status_code == 422
    taken = editor_forms.submit(editor, NEW, CREATE, name="house")
    assert "already exists" in taken.context["page"].form.problems["name"]
    made = editor_forms.submit(
        editor, NEW, CREATE, name="loft", parent="house", plugins_more="elsewhere, other"
    )
    assert (made.status_code, made.headers["Location"]) == (303, "/loadouts/loft/")
    assert entries.read("loadout", "loft")["plugins"] == ["elsewhere", "other"]

    refused = editor_forms.submit(editor, HOUSE, "/loadouts/house/remove/")
    assert refused.headers["Location"] == HOUSE
    assert "is used by the loadout loft, the agent ada" in open_page(editor).notice.text
    gone = editor_forms.submit(editor, "/loadouts/loft/", "/loadouts/loft/remove/")
    assert (gone.status_code, gone.headers["Location"]) == (303, "/loadouts/")
    page = open_page(editor, "/loadouts/")
    assert page.loadouts[0].loadout.name == "house"
    dashboard.post(editor, f"/audit/{page.notice.undo}/undo/", htmx=False)
    assert entries.read("loadout", "loft")["parent"] == "house"


def test_only_neighboring_loadouts_are_swapped(editor: Client) -> None:
    factories.loadout("annex", position=1)
    house, annex, *_ = open_page(editor, "/loadouts/").loadouts
    assert (house.up, house.down, annex.up, annex.down) == ("", "annex", "house", "")
    swap = {"first": "annex", "second": "house", "next": "/loadouts/"}
    assert dashboard.post(editor, "/order/loadout/", htmx=False, **swap).status_code == 303
    assert [line.loadout.name for line in open_page(editor, "/loadouts/").loadouts][:2] == ["annex", "house"]
    # Submitting it again is refused: their order has changed.
    dashboard.post(editor, "/order/loadout/", htmx=False, **swap)
    assert "changed by you, in another tab" in open_page(editor, "/loadouts/").notice.text
    assert dashboard.post(editor, "/order/toolkit/", htmx=False, **swap).status_code == 403


def test_hostile_texts_are_escaped(editor: Client) -> None:
    models.Loadout.objects.filter(name="house").update(description="<script>alert(1)</script>")
    for address in ("/loadouts/", HOUSE, EDIT):
        assert "<script>alert" not in editor.get(address).content.decode()
    assert editor_forms.submit(editor, NEW, CREATE, name="</script><b>").status_code == 422
    for nonsense in ("[nonsense", "[" * 100_000, '{"description": "\\ud800"}'):
        assert editor_forms.submit(editor, EDIT, SAVE, was=nonsense).status_code in (200, 303, 409)


def test_query_counts_do_not_grow_with_loadouts_agents_and_tools(viewer: Client, more_tools: Any) -> None:
    def cost() -> list[int]:
        for address in ("/loadouts/", HOUSE):
            viewer.get(address)
        return [dashboard.count_queries(partial(viewer.get, address)) for address in ("/loadouts/", HOUSE)]

    few = cost()
    more_tools(60)
    for number in range(10):
        factories.agent(f"more_{number}", loadout="house")
        factories.loadout(f"more_{number}", parent="house")
    assert cost() == few
    assert max(few) <= 12
