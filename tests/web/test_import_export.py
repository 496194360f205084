"""Tests that a configuration is exported as a file, and imported as previewed, entirely or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from tests.core import test_adoption as examples
from tests.web import dashboard
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_plans, belts
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

CHECK, IMPORT = "/belt/check/", "/belt/import/"
TEXT = """
toolkits:
  - key: issues
    title: Issues
    members: [github__issue_read]
agents:
  - key: cleo
    tools_config: {releases: true}
"""


@pytest.fixture
def importer(db: None) -> Client:
    """Return the browser of a user who may add and change everything in a belt."""
    user = get_user_model().objects.create_user("ina")
    kinds = ("category", "plugin", "tool", "toolkit", "loadout", "agent", "subapp")
    codenames = [f"{act}_{kind}" for act in ("add", "change", "delete") for kind in kinds]
    user.user_permissions.set(auth.Permission.objects.filter(codename__in=codenames))
    browser = Client()
    browser.force_login(user)
    return browser


def check(browser: Client, text: str = TEXT) -> Any:
    """Submit a belt for checking, and return the response."""
    return browser.post(CHECK, {"text": text})


def shown(response: Any) -> dict[str, Any]:
    """Return the fields of the import form in the response."""
    page = response.context["page"]
    return {
        "text": page.text,
        "revision": page.checked.assessment.revision,
        "shown": page.checked.assessment.digest,
    }


def problems(response: Any) -> list[str]:
    return [f"{problem.path} {problem.message}".strip() for problem in response.context["page"].problems]


def test_a_belt_is_exported_whole_or_by_section(importer: Client) -> None:
    whole = importer.get("/belt/export/")
    assert yaml.safe_load(whole.content) == belts.export()
    assert whole.headers["Content-Disposition"].endswith('.yaml"')
    part = importer.get("/belt/export/", {"section": ["agents", "toolkits"], "form": "json"})
    assert list(json.loads(part.content)) == ["toolkits", "agents"]
    assert importer.get("/belt/export/", {"section": "nonsense"}).status_code == 200


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_an_export_of_decisions_is_the_text_of_the_command(
    importer: Client, form: str, tmp_path: Path
) -> None:
    # As its server lists it: its texts are not decided.
    models.Tool.objects.filter(key="github__issue_read").update(
        approved="sha256:" + "0" * 64, description="Reads."
    )
    file = tmp_path / f"belt.{form}"
    call_command("belt", "export", str(file), "--decisions", stdout=io.StringIO())
    whole = importer.get("/belt/export/", {"form": form})
    decisions = importer.get("/belt/export/", {"form": form, "decisions": "on"})
    assert decisions.content == file.read_bytes() != whole.content
    assert decisions.headers["Content-Disposition"].endswith(f'-decisions.{form}"')
    part = importer.get("/belt/export/", {"form": "json", "decisions": "on", "section": "agents"})
    assert list(json.loads(part.content)) == ["agents"]


def test_exporting_plugins_requires_permission(viewer: Client) -> None:
    assert "plugins" not in yaml.safe_load(viewer.get("/belt/export/").content)
    assert viewer.get("/belt/export/", {"section": "plugins"}).status_code == 403
    offered = [section for section, *_ in viewer.get("/belt/").context["page"].sections]
    assert "plugins" not in offered
    assert "agents" in offered


def test_the_import_form_says_that_an_entry_is_replaced_completely(importer: Client) -> None:
    page = importer.get("/belt/").content.decode()
    assert "An entry replaces the stored entry completely: fields that it leaves out are reset." in page


def test_checking_a_belt_previews_changes_and_effects_without_writing(importer: Client) -> None:
    before = belts.export()
    response = check(importer)
    assert (response.status_code, belts.export()) == (200, before)
    checked = response.context["page"].checked
    assert checked.words == "1 added, 1 changed, 0 unchanged"
    lines = {
        entry.name: [(line.label, line.before, line.after) for line in lines]
        for section in checked.sections
        for entry, lines in section.entries
    }
    assert lines["issues"] == [
        ("title", "Issues and reviews", "Issues"),
        ("description", "Reads and files issues.", "not set"),
        ("members: github__issue_write", "present", "removed"),
        ("policy", "Read before you write.", "not set"),
        ("policy_when_off", "You cannot see issues.", "not set"),
        ("triggers: file", "present", "removed"),
    ]
    assert lines["cleo"] == [("tools_config", "not set", '{"releases": true}')]
    effects = {
        consequence.agent: (consequence.effect.added, consequence.effect.removed, consequence.reasons)
        for consequence in checked.assessment.consequences
    }
    assert effects == {
        "ada": ((), ("github__issue_write",), ()),
        "cleo": (
            ("github__issue_read", "github__merge", "shell"),
            (),
            (
                "Enables destructive tools: github__merge.",
                "Enables tools that do not state their risk: shell.",
            ),
        ),
    }
    assert checked.dangerous
    html = dashboard.text(response)
    assert "<strong>cleo</strong>" in html
    assert "Enables destructive tools: github__merge." in html


def test_a_belt_is_imported_as_previewed_and_can_be_undone(importer: Client) -> None:
    before = belts.export()
    response = importer.post(IMPORT, {**shown(check(importer)), "reason": "Spring cleaning."})
    assert (response.status_code, response.headers["Location"]) == (303, "/belt/")
    assert entries.read("agent", "cleo")["tools_config"] == {"releases": True}
    notice = importer.get("/belt/").context["page"].notice
    assert notice.text == "Belt imported: 1 added, 1 changed, 0 unchanged."
    assert set(models.AuditEntry.objects.values_list("reason", flat=True)) == {"Spring cleaning."}
    dashboard.post(importer, f"/audit/{notice.undo}/undo/", htmx=False, whole="yes", next="/belt/")
    assert belts.export() == before


def test_an_uploaded_file_is_imported(importer: Client) -> None:
    upload = SimpleUploadedFile("belt.yaml", b"\xef\xbb\xbf" + TEXT.encode())
    response = importer.post(CHECK, {"file": upload, "text": "ignored"})
    assert response.context["page"].checked.words == "1 added, 1 changed, 0 unchanged"
    assert response.context["page"].text == TEXT
    # Browsers submit text with CRLF line endings; it is still the same belt.
    fields = {**shown(response), "text": TEXT.replace("\n", "\r\n")}
    assert importer.post(IMPORT, fields).status_code == 303


def test_an_up_to_date_belt_has_nothing_to_import(importer: Client) -> None:
    response = check(importer, yaml.safe_dump(belts.export()))
    assert response.context["page"].checked.is_nothing
    assert "Already up to date" in response.content.decode()


def test_an_import_is_refused_after_a_concurrent_change(importer: Client) -> None:
    fields = shown(check(importer))
    entries.change(OPERATOR, "toolkit", "research", {"title": "Reading"})
    response = importer.post(IMPORT, fields)
    page = response.context["page"]
    assert (response.status_code, page.notice.tone) == (409, "refused")
    assert "The configuration was changed by another operator" in page.notice.text
    # The response shows an updated preview, which can be imported.
    assert importer.post(IMPORT, shown(response)).status_code == 303


def test_only_the_previewed_belt_can_be_imported(importer: Client) -> None:
    fields = {**shown(check(importer)), "text": TEXT.replace("cleo", "dora")}
    response = importer.post(IMPORT, fields)
    assert response.status_code == 409
    assert not models.Agent.objects.filter(key__in=["cleo", "dora"]).exists()
    assert importer.post(IMPORT, {"text": TEXT}).status_code == 409


def test_every_problem_is_reported_with_its_path(importer: Client) -> None:
    response = check(importer, "agents: [{key: ada, tools_config: {nope: true}}, {key: '', colour: red}]")
    assert response.status_code == 422
    reported = problems(response)
    assert any(problem.startswith("agents.ada.tools_config.nope ") for problem in reported)
    assert any(problem.startswith("agents[1].colour ") for problem in reported)
    assert "nope" in response.content.decode()


HOSTILE = {
    "a: &a [x]\nb: [*a, *a]": "aliases are not allowed",
    "[" * 200: "nested more than",
    "!!python/object/apply:os.system [ls]": "could not determine a constructor",
    "agents: [{key: ada, key: bob}]": "is repeated in one mapping",
    "just text": "A belt is a mapping",
    "   ": "Choose a file",
    "a: b: c": "This is not YAML: ",
    "x: \x01": "cannot be read",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_invalid_documents_get_a_clear_error(importer: Client, text: str) -> None:
    response = check(importer, text)
    assert response.status_code == 422
    assert any(HOSTILE[text] in problem for problem in problems(response)), problems(response)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("2026-11-22", "agents.ada.title "),
        ("!!binary aGk=", "agents.ada.title "),
        ("!!set {a, b}", "This cannot be read: could not determine a constructor for the tag"),
    ],
)
def test_yaml_values_unknown_to_json_are_rejected_by_check_and_import(
    importer: Client, value: str, problem: str
) -> None:
    text = f"agents: [{{key: ada, title: {value}}}]"
    for response in (
        check(importer, text),
        importer.post(IMPORT, {"text": text, "revision": 0, "shown": ""}),
    ):
        assert response.status_code == 422
        assert any(line.startswith(problem) for line in problems(response)), problems(response)


def test_binary_or_oversized_files_are_rejected(importer: Client, settings: Any) -> None:
    assert (
        "not UTF-8" in problems(importer.post(CHECK, {"file": SimpleUploadedFile("x", b"\xff\xfe\xfa")}))[0]
    )
    settings.TOOLBELT_API_BODY_BYTES = 100
    reported = problems(importer.post(CHECK, {"file": SimpleUploadedFile("x.yaml", b"a" * 101)}))
    assert reported == [
        "The file is 0.000101 MB, and the maximum is 0.0001 MB: import it on the server, with"
        " `.venv/bin/python manage.py belt import`."
    ]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    response = importer.post(CHECK, {"text": "a" * 2000})
    assert response.status_code == 413
    assert "Request too large" in response.content.decode()


def test_a_server_command_cannot_be_imported_on_the_web(importer: Client) -> None:
    response = check(importer, "plugins: [{name: evil, namespace: evil, upstream: {command: sh}}]")
    assert response.status_code == 422
    assert "runs code on the server" in problems(response)[0]


def test_importing_requires_permission_for_everything_in_the_belt(operator: Client, viewer: Client) -> None:
    for browser in (operator, viewer):
        assert check(browser).status_code == 403
        assert browser.post(IMPORT, {"text": TEXT}).status_code == 403
        assert not browser.get("/belt/").context["page"].may_import


def test_query_count_does_not_grow_with_the_catalog(importer: Client, more_tools: Any) -> None:
    importer.get("/belt/")
    few = dashboard.count_queries(lambda: importer.get("/belt/"))
    more_tools(60)
    importer.get("/belt/")
    assert dashboard.count_queries(lambda: importer.get("/belt/")) == few <= 12


def test_another_programs_configuration_is_converted_and_imported(importer: Client) -> None:
    response = check(importer, json.dumps(examples.MINDROOM))
    page = response.context["page"]
    assert page.adopted == "MindRoom's configuration"
    assert "agents.assistant.rooms" in [entry.path for entry in page.left_aside]
    assert "rooms" in response.content.decode()
    importer.post(IMPORT, shown(response))
    assert entries.read("agent", "assistant")["initial_toolkits"] == ["research"]


def test_problems_of_a_converted_file_have_their_original_path(importer: Client) -> None:
    response = check(
        importer, json.dumps(examples.edited("toolkits.devops.tools", ["docker", "list_toolkits"]))
    )
    assert [problem.path for problem in response.context["page"].problems] == ["toolkits.devops.tools[1]"]
    assert "plugins file" in problems(check(importer, '{"tool_plugins": [{"id": "kb"}]}'))[0]


def test_what_was_changed_since_a_belt_was_applied_is_shown(
    importer: Client, viewer: Client, admin_client: Client
) -> None:
    write = writing.by("ci", via="command").replace(confirm=True)
    belt_plans.apply(write, {"agents": [{"key": "zoe", "title": "Zoe"}]}, name="fleet.yaml")
    shown = dashboard.text(importer.get("/belt/"))
    assert "Applied last: fleet.yaml" in shown
    assert "Nothing differs from it." in shown

    entries.change(OPERATOR, "agent", "zoe", {"title": "Z"})

    line = f"agent zoe: title, changed by {OPERATOR.actor.name}"
    assert line in dashboard.text(importer.get("/belt/"))
    assert "fleet.yaml" not in dashboard.text(viewer.get("/belt/"))
    message = f"1 entry differs from the belt applied last, fleet.yaml: {line}."
    assert message in dashboard.text(admin_client.get("/status/"))
    overview = dashboard.text(admin_client.get("/"))
    assert "1 entry differs from the belt applied last" in overview
    assert line in overview
