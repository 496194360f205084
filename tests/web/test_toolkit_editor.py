"""Tests of the toolkit editor: its rows, its live preview, and saving after a preview."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.web import dashboard, editor_forms
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.web.toolkits import forms as toolkits

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

PAGE, EDIT, SAVE = "/toolkits/issues/", "/toolkits/issues/edit/", "/toolkits/issues/save/"
NEW, CREATE = "/new/toolkit/", "/new/toolkit/save/"


@pytest.fixture
def editor(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user with all permissions for toolkits."""
    codenames = [f"{act}_toolkit" for act in ("add", "change", "delete")]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=codenames))
    return operator


def form(response: Any) -> Any:
    return response.context["page"].form


def test_the_form_contains_every_field_of_the_toolkit(editor: Client) -> None:
    models.Toolkit.objects.filter(key="issues").update(
        tool_notes={"github__issue_read": "First.", "papers": "Elsewhere."},
        triggers=[
            {
                "name": "file",
                "any": ["bug", "defect"],
                "all": [["open", "file"], ["issue"]],
                "none": ["no"],
                "focus": ["github__issue_write"],
                "tool_choice": "required",
            },
            {"name": "nothing", "any": ["never mind"], "focus": []},
        ],
    )
    models.Member.objects.filter(tool__key="github__issue_write").update(options={"draft": True})
    read = form(editor.get(EDIT))
    assert [(row.member, row.note, row.options) for row in read.members] == [
        ("github__issue_read", "First.", ""),
        ("github__issue_write", "", '{"draft": true}'),
    ]
    file, nothing = read.triggers
    assert (file.any, file.every, file.none) == ("bug\ndefect", "open\nfile\n\nissue", "no")
    assert (file.about, file.focus, file.choice) == ("some", "github__issue_write", "required")
    assert (nothing.about, nothing.focus) == ("some", "")
    html = dashboard.text(editor.get(EDIT))
    assert html.count("<details open> <summary>Note and options") == 2
    assert "1 note on tools outside this toolkit is kept." in html
    before = entries.read("toolkit", "issues")
    assert editor_forms.submit(editor, EDIT, SAVE).status_code == 303
    assert entries.read("toolkit", "issues") == before
    assert not models.AuditEntry.objects.exists()


def test_saving_previews_the_affected_agents_before_applying(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, act="drop-members-1")
    response = editor_forms.resubmit(
        editor, response, SAVE, add_members="papers", policy="Read {active_tools} first.\r\n"
    )
    page = response.context["page"]
    assert {(difference.label, difference.before, difference.after) for difference in page.differences} == {
        ("members", "github__issue_write", "papers"),
        ("policy", "Read before you write.", "Read {active_tools} first."),
    }
    ada, shown = next(pair for pair in page.consequences if pair[0].agent.key == "ada")
    assert (ada.effect.added, ada.effect.removed) == (("papers",), ("github__issue_write",))
    assert shown.notes == ("changes policy issues",)
    assert not models.AuditEntry.objects.exists()
    response = editor_forms.resubmit(editor, response, SAVE, reason="Tidier.")
    assert (response.status_code, response.headers["Location"]) == (303, PAGE)
    entry = dashboard.latest_entry()
    assert (entry.action, entry.reason, sorted(entry.after)) == (
        "toolkit.change",
        "Tidier.",
        ["members", "policy"],
    )
    assert models.AuditEntry.objects.count() == 1
    dashboard.post(editor, f"/audit/{entry.pk}/undo/", htmx=False)
    assert entries.read("toolkit", "issues")["policy"] == "Read before you write."


def test_the_live_preview_updates_the_policy_and_directive(editor: Client) -> None:
    response = editor_forms.submit(
        editor,
        EDIT,
        SAVE,
        htmx=True,
        act="try",
        whose="ada",
        policy="You have {active_tools}.",
        note=["Look here.", ""],
        message="a defect again",
        trigger_any="bug\r\ndefect",
    )
    preview = response.context["page"].preview
    assert preview.policy == (
        "You have github__issue_read, github__issue_write.\n- github__issue_read: Look here."
    )
    assert preview.focus.tools == ("github__issue_write",)
    assert form(response).triggers[0].trial.decides
    html = dashboard.text(response)
    assert "<form" not in html
    assert "matches first" in html
    assert entries.read("toolkit", "issues")["policy"] == "Read before you write."


def test_the_preview_applies_the_edit_to_the_chosen_agent(editor: Client) -> None:
    # The agent's switch is on, so a new member becomes active.
    response = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members="papers", whose="ada")
    assert response.context["page"].preview.active == "3 of 3 tools on"
    response = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members="papers", whose="bob")
    assert response.context["page"].preview.active == "2 of 3 tools on"


def test_an_invalid_pattern_is_reported_at_its_field(editor: Client) -> None:
    response = editor_forms.submit(
        editor, EDIT, SAVE, htmx=True, act="try", trigger_any="bug\r\n(oops", message="a bug"
    )
    assert (
        "'(oops' is not a pattern that runs in linear time (RE2)"
        in form(response).triggers[0].problems["any"]
    )
    assert 'id="trigger-1-any-wrong" hx-swap-oob="innerHTML">&#x27;(oops&#x27;' in dashboard.text(response)
    # The valid patterns are still matched.
    assert form(response).triggers[0].trial.fires
    response = editor_forms.submit(editor, EDIT, SAVE, trigger_any="(oops")
    assert response.status_code == 422
    assert "Not saved." in dashboard.text(response)
    response = editor_forms.submit(
        editor, EDIT, SAVE, trigger_every="(?=x)\r\n\r\n\\1", trigger_focus="paper"
    )
    problems = form(response).triggers[0].problems
    assert problems["every"].count("RE2") == 2
    assert problems["focus"].startswith("There is no tool named 'paper'.")


def test_missing_patterns_and_invalid_options_are_reported(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, trigger_any="", options=["[1]", ""])
    assert response.status_code == 422
    assert form(response).members[0].options_problem.startswith("Enter options as a JSON object")
    response = editor_forms.submit(editor, EDIT, SAVE, trigger_any="")
    assert "set 'any' or 'all'" in form(response).triggers[0].problems["any"]


def test_trigger_rows_are_added_moved_and_removed(editor: Client) -> None:
    response = editor_forms.submit(editor, EDIT, SAVE, act="add-triggers-0")
    assert [row.name for row in form(response).triggers] == ["file", "trigger 2"]
    response = editor_forms.resubmit(editor, response, SAVE, act="up-triggers-1")
    assert [(row.name, row.any) for row in form(response).triggers] == [
        ("trigger 2", ""),
        ("file", "bug"),
    ]
    response = editor_forms.resubmit(editor, response, SAVE, act="drop-triggers-0")
    assert [row.name for row in form(response).triggers] == ["file"]
    response = editor_forms.resubmit(editor, response, SAVE, act="drop-triggers-77")
    assert [row.name for row in form(response).triggers] == ["file"]


def test_a_secret_in_options_is_refused_at_its_field_and_a_stored_one_is_not_shown(editor: Client) -> None:
    member = models.Member.objects.filter(tool__key="github__issue_write")
    response = editor_forms.submit(editor, EDIT, SAVE, options=["", '{"auth": {"apiKey": "opensesame"}}'])
    assert response.status_code == 422
    assert (
        form(response).members[1].options_problem.startswith("The option 'auth.apiKey' looks like a secret")
    )

    member.update(options={"auth": {"apiKey": "opensesame"}})
    assert "opensesame" not in editor.get(EDIT).content.decode()
    assert "opensesame" not in editor.get("/toolkits/issues/").content.decode()
    assert editor_forms.submit(editor, EDIT, SAVE, title="Tickets").status_code == 303
    assert entries.read("toolkit", "issues")["title"] == "Tickets"
    assert member.get().options == {"auth": {"apiKey": "opensesame"}}


def test_notes_on_nonmember_tools_and_options_survive_an_edit(editor: Client) -> None:
    models.Toolkit.objects.filter(key="issues").update(tool_notes={"papers": "Elsewhere."})
    models.Member.objects.filter(tool__key="github__issue_write").update(options={"draft": True})
    response = editor_forms.submit(editor, EDIT, SAVE, note=["First.", ""])
    editor_forms.resubmit(editor, response, SAVE)
    stored = entries.read("toolkit", "issues")
    assert stored["tool_notes"] == {"papers": "Elsewhere.", "github__issue_read": "First."}
    assert stored["members"][1] == {"tool": "github__issue_write", "options": {"draft": True}}


def test_a_toolkit_defined_in_code_is_read_only(editor: Client) -> None:
    models.Toolkit.objects.filter(key="issues").update(plugin="github")
    assert EDIT not in dashboard.text(editor.get(PAGE))
    response = editor.get(EDIT)
    assert (response.status_code, response.headers["Location"]) == (303, PAGE)
    notice = editor.get(PAGE).context["page"].notice
    assert "is defined by the code of the plugin github" in notice.text
    seen = json.dumps(entries.read("toolkit", "issues"))
    response = dashboard.post(editor, SAVE, htmx=False, was=seen, policy="Mine.")
    assert response.status_code == 422
    assert "owns this" in dashboard.text(response)


def test_a_viewer_cannot_open_the_editor(viewer: Client) -> None:
    assert EDIT not in dashboard.text(viewer.get(PAGE))
    assert "New toolkit" not in dashboard.text(viewer.get("/toolkits/"))
    assert [viewer.get(address).status_code for address in (EDIT, NEW)] == [403, 403]


def test_a_toolkit_is_created_and_removed(editor: Client) -> None:
    assert form(editor_forms.submit(editor, NEW, CREATE)).problems["key"] == "Enter a key."
    response = editor_forms.submit(editor, NEW, CREATE, key="issues__x", act="try")
    assert "__" in form(response).problems["key"]
    assert "" not in form(response).problems
    taken = editor_forms.submit(editor, NEW, CREATE, key="issues")
    assert "already exists" in form(taken).problems["key"]
    response = editor_forms.submit(
        editor, NEW, CREATE, key="reading", add_members="papers shell", policy="Read.", policy_when_off="No."
    )
    # Ada has one of the tools, and the toolkit does not concern bob: he does not get the text for when it is off.
    assert [one.agent.key for one, _ in response.context["page"].consequences] == ["ada"]
    made = editor_forms.resubmit(editor, response, CREATE)
    assert made.headers["Location"] == "/toolkits/reading/"

    refused = editor_forms.submit(editor, PAGE, "/toolkits/issues/remove/")
    assert refused.headers["Location"] == PAGE
    assert "is used by the agent ada" in editor.get(PAGE).context["page"].notice.text
    response = editor_forms.submit(editor, "/toolkits/reading/", "/toolkits/reading/remove/")
    assert (
        editor_forms.resubmit(editor, response, "/toolkits/reading/remove/").headers["Location"]
        == "/toolkits/"
    )
    assert not models.Toolkit.objects.filter(key="reading").exists()
    assert "Toolkit reading removed." in editor.get("/toolkits/").context["page"].notice.text


def test_a_toolkits_policy_position_is_changed_on_its_page(editor: Client) -> None:
    page = editor.get(PAGE).context["page"]
    assert (page.position, page.up, page.down) == ("1 of 3", "", "releases")
    dashboard.post(editor, "/order/toolkit/", htmx=False, first="releases", second="issues", next=PAGE)
    page = editor.get(PAGE).context["page"]
    assert (page.position, page.up, page.down) == ("2 of 3", "releases", "research")
    assert dashboard.latest_entry().action == "toolkit.order"


def test_hostile_texts_are_escaped(editor: Client) -> None:
    text = "</textarea><script>alert(1)</script>"
    response = editor_forms.submit(
        editor, EDIT, SAVE, act="try", policy=text, trigger_name=text, note=[text, text]
    )
    assert "<script>alert" not in response.content.decode()
    response = editor_forms.submit(editor, EDIT, SAVE, policy="a\0b")
    assert "cannot be stored" in form(response).problems["policy"]
    assert editor_forms.submit(editor, NEW, CREATE, key="a\0b").status_code == 422


def test_query_count_does_not_grow_with_tools_and_agents(editor: Client, more_tools: Any) -> None:
    editor.get(EDIT)
    few = dashboard.count_queries(lambda: editor.get(EDIT))
    more_tools(60)
    for number in range(8):
        factories.agent(f"more_{number}")
    editor.get(EDIT)
    assert dashboard.count_queries(lambda: editor.get(EDIT)) == few
    assert few <= 12


def test_a_bulk_switch_logs_one_entry_per_agent_in_one_batch(operator: Client) -> None:
    html = dashboard.text(operator.get("/toolkits/research/"))
    assert 'name="for" value="bob"' in html
    confirmation = operator.get("/bulk/toolkits/research/", {"set": "toolkits-true", "for": ["ada", "bob"]})
    question = confirmation.context["confirmation"]
    assert question.title == "Turn on Research `research` for 2 agents?"
    fields = dict(question.fields)
    assert dashboard.post(operator, question.action, htmx=False, **fields).status_code == 303
    done = models.AuditEntry.objects.filter(action="switch.set", key="research")
    assert sorted(entry.subject_key for entry in done) == ["ada", "bob"]
    assert len({entry.batch for entry in done}) == 1


def test_searching_offers_tools_and_adds_those_selected(editor: Client) -> None:
    before = [row.member for row in form(editor.get(EDIT)).members]
    searched = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members="scientific papers")
    assert "papers" in [tool.key for tool in form(searched).matching_tools]
    assert [row.member for row in form(searched).members] == before
    html = dashboard.text(searched)
    assert '<input type="checkbox" name="add_members" value="papers"' in html
    assert 'value="scientific papers"' in html
    added = editor_forms.submit(
        editor, EDIT, SAVE, act="add-members-0", add_members=["scientific papers", "papers", "shell"]
    )
    assert [row.member for row in form(added).members] == [*before, "papers", "shell"]
    nothing = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members="xyzzy")
    assert "No matching tools." in dashboard.text(nothing)
    everything = editor_forms.submit(
        editor, EDIT, SAVE, act="all-members-0", add_members="scientific papers", shown="papers shell "
    )
    assert [row.member for row in form(everything).members] == [*before, "papers", "shell"]
    # Saving with an unknown name is an error.
    assert editor_forms.submit(editor, EDIT, SAVE, add_members="xyzzy").status_code == 422


def test_known_keys_of_a_list_are_added_and_unknown_keys_are_reported(editor: Client) -> None:
    before = [row.member for row in form(editor.get(EDIT)).members]
    response = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members="shell, papers, shel")
    assert [row.member for row in form(response).members] == [*before, "shell", "papers"]
    html = dashboard.text(response)
    assert "No tool is called shel. The others were added." in html
    assert 'value="shel"' in html
    # Existing members are not added again.
    again = editor_forms.submit(editor, EDIT, SAVE, act="add-members-0", add_members=f"{before[0]} shell")
    assert [row.member for row in form(again).members] == [*before, "shell"]


def test_a_toolkit_above_the_row_limit_cannot_be_edited(editor: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("toolbelt.web.toolkits.forms.MAX_ROWS", 1)
    page = editor.get(PAGE).content.decode()
    assert "exceed the limit of this editor (at most 1 of each)" in page
    assert EDIT not in page
    redirect = editor.get(EDIT)
    assert (redirect.status_code, redirect.headers["Location"]) == (303, PAGE)
    assert "Edit the toolkit in a belt instead" in editor.get(PAGE).content.decode()


def test_exceeding_the_row_limit_is_rejected_without_losing_rows(editor: Client, monkeypatch: Any) -> None:
    before = entries.read("toolkit", "issues")
    monkeypatch.setattr("toolbelt.web.toolkits.forms.MAX_ROWS", 2)
    added = editor_forms.submit(editor, EDIT, SAVE, add_members="shell papers", act="add-members-0")
    assert [row.member for row in form(added).members][-2:] == ["shell", "papers"]
    assert "exceed the limit of this editor" in form(added).problems[""]
    response = editor_forms.resubmit(editor, added, SAVE)
    assert response.status_code == 422
    assert "exceed the limit of this editor" in form(response).problems[""]
    assert len(form(response).members) == 4
    assert entries.read("toolkit", "issues") == before


@pytest.mark.parametrize(("most", "takes"), [(1000, False), (5000, True), (None, True)])
def test_the_row_limit_depends_on_the_form_field_limit(settings: Any, most: int | None, takes: bool) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = most
    assert (toolkits.too_many(300, 20) == "") is takes
    assert toolkits.too_many(301, 0)


def test_a_form_with_too_many_fields_is_rejected(editor: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 5
    response = editor.post(SAVE, {"member": [f"tool{number}" for number in range(10)]})
    assert response.status_code == 413
    assert "Nothing was changed" in response.content.decode()


def test_a_new_toolkit_starts_with_the_selected_tools(editor: Client) -> None:
    html = editor.get("/tools/").content.decode()
    assert 'name="tool" value="github__issue_read" form="selected-tools"' in html
    page = editor.get(NEW, {"tool": ["papers", "github__issue_read", "papers", "no_such_tool"]}).context[
        "page"
    ]
    assert [row.member for row in page.form.members] == ["papers", "github__issue_read"]


def test_selecting_tools_for_a_toolkit_requires_permission(viewer: Client) -> None:
    assert "selected-tools" not in viewer.get("/tools/").content.decode()
