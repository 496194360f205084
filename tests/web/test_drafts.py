"""Tests that a form's change can be saved as a draft, seen, and applied by those who may make it."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests import factories, fast_fixtures
from tests.factories import call as recorded
from tests.web import dashboard
from toolbelt import models
from toolbelt.control import drafts, trial_rounds, trials, writing
from toolbelt.control.access import switches
from toolbelt.control.alerts import events
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.reports import attention
from toolbelt.core import agents, rollouts, tool_versions
from toolbelt.store import audit, clock, snapshots

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]
WRITE = writing.by("setup", via="command").replace(confirm=True)
SWITCH = "/agents/ada/switches/issues/"


@pytest.fixture
def reader(db: None) -> Client:
    """Return the browser of a user with the role viewer."""
    user = get_user_model().objects.create_user("vera")
    roles.assign(WRITE, "vera", "viewer")
    return fast_fixtures.logged_in(user)


def save(browser: Client, address: str, *, htmx: bool = True, **fields: Any) -> Any:
    return dashboard.post(browser, "/review/drafts/save/", htmx=htmx, draft_of=address, **fields)


def saved() -> drafts.Draft:
    [draft] = drafts.listed()
    return draft


def act(browser: Client, draft: drafts.Draft, name: str, **fields: Any) -> Any:
    return dashboard.post(browser, f"/review/drafts/{draft.key}/{name}/", **fields)


def of_ada(on: bool = False) -> drafts.Draft:
    return drafts.save(WRITE, lambda write: switches.flip(write, "ada", "issues", on))


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a switch": (SWITCH, {"on": "false", "was": "true"}),
    "an override": ("/agents/ada/overrides/shell/", {"on": "false", "was": "unset"}),
    "a reset": ("/agents/ada/reset/", {"was": "clock__now=true"}),
    "many at once": ("/bulk/", {"on": "false", "seen": '{"ada": {"issues": true, "shell": null}}'}),
    "a block": ("/tools/shell/block/", {"on": "true", "was": "false"}),
    "an agent's settings": ("/agents/ada/settings/change/", {"title": "Ada", "was": "{}"}),
    "an archive": ("/agents/ada/archive/", {"archived": "yes"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_change_of_a_form_is_saved_and_not_made(administrator: Client, form: str) -> None:
    address, fields = FORMS[form]
    before = belts.export()

    response = save(administrator, address, **fields, reason="Too much")

    draft = saved()
    assert response.headers["HX-Redirect"] == f"/review/drafts/{draft.key}/"
    assert (draft.author, draft.reason, draft.revision) == ("root", "Too much", belts.revision())
    assert belts.export() == before
    assert [entry.action for entry in audit.page(subject_kind="draft").entries] == ["draft.save"]
    page = administrator.get(f"/review/drafts/{draft.key}/")
    assert page.context["page"].notice.tone == "done"
    act(administrator, draft, "apply", confirm="yes")
    assert belts.export() != before


def test_a_belt_is_saved_as_it_was_checked(administrator: Client) -> None:
    text = "agents:\n- {key: new}\n"
    checked = dashboard.post(administrator, "/belt/check/", text=text).context["page"].checked.assessment

    save(administrator, "/belt/import/", text=text, revision=checked.revision, shown=checked.digest)

    assert "new" not in {agent["key"] for agent in belts.export()["agents"]}
    act(administrator, saved(), "apply", confirm="yes")
    assert "new" in {agent["key"] for agent in belts.export()["agents"]}


def test_without_htmx_the_browser_is_sent_to_the_draft(administrator: Client) -> None:
    response = save(administrator, SWITCH, htmx=False, on="false", was="true")

    assert (response.status_code, response.headers["Location"]) == (303, f"/review/drafts/{saved().key}/")


def test_a_form_that_is_refused_is_not_saved_and_keeps_its_page(administrator: Client) -> None:
    response = save(administrator, SWITCH, on="false", was="unset")

    assert (response.status_code, response.headers["HX-Reswap"]) == (409, "none")
    assert response.context["page"].notice.tone == "refused"
    assert not models.Draft.objects.exists()


def test_only_forms_whose_changes_are_proved_are_saved(administrator: Client) -> None:
    for address in ("/logout/", "/plugins/github/refresh/", "/review/drafts/save/", "https://example.com/"):
        assert save(administrator, address).status_code == 404


def test_a_viewer_sees_a_draft_with_its_proof_and_can_do_nothing_with_it(reader: Client) -> None:
    definition = tool_versions.short(tool_versions.version(snapshots.catalog().tools["github__issue_read"]))
    recorded(
        "github__issue_read", agent="ada", state="", subagent="", dispatched=False, definition=definition
    )
    draft = of_ada()

    listed = reader.get("/review/drafts/").context["page"]
    page = reader.get(f"/review/drafts/{draft.key}/").context["page"]
    proof = reader.get(f"/review/drafts/{draft.key}/proof/", headers=dashboard.HTMX).context["page"].proof

    assert [line.title for line in listed.open] == ["Turn off issues for ada"]
    assert (page.may_apply, page.may_discard, page.differing) == (False, False, ())
    [change] = page.changes
    assert (change.verb, change.title, change.subject, change.agent) == (
        "Turn off",
        "Issues and reviews",
        "issues",
        "ada",
    )
    assert (proof.count("refused"), proof.calls) == (1, 1)
    for name in ("apply", "discard", "observe", "schedule", "stop"):
        assert act(reader, draft, name).status_code == 403
    assert save(reader, SWITCH, on="false", was="true").status_code == 403
    assert switches.current_value("ada", "issues") is True


def test_the_operator_of_one_agent_sees_and_applies_drafts_of_that_agent_only(belt: None) -> None:
    user = get_user_model().objects.create_user("nora")
    roles.set_operators(WRITE, "ada", ["nora"])
    browser = fast_fixtures.logged_in(user)
    other = drafts.save(WRITE, lambda write: switches.flip(write, "bob", "issues", True))
    save(browser, SWITCH, on="false", was="true")
    own = next(draft for draft in drafts.listed() if draft.author == "nora")

    assert [line.draft.key for line in browser.get("/review/drafts/").context["page"].open] == [own.key]
    assert browser.get(f"/review/drafts/{other.key}/").status_code == 403
    assert act(browser, other, "apply").status_code == 403
    act(browser, own, "apply", confirm="yes")
    assert switches.current_value("ada", "issues") is False


def test_what_has_to_be_confirmed_is_asked_when_the_draft_is_applied(administrator: Client) -> None:
    save(administrator, "/agents/bob/switches/releases/", on="true", was="unset")
    draft = saved()

    asked = act(administrator, draft, "apply")

    confirmation = asked.context["confirmation"]
    assert confirmation.reasons[0] == "bob is protected."
    assert switches.current_value("bob", "releases") is None
    act(administrator, draft, "apply", **dict(confirmation.fields), reason="Agreed")
    assert switches.current_value("bob", "releases") is True
    assert [entry.reason for entry in audit.of_batch(draft.key)] == ["Agreed"]


def test_the_page_names_what_is_not_as_it_was_and_nothing_is_applied(administrator: Client) -> None:
    draft = of_ada()
    switches.flip(WRITE, "ada", "issues", None)

    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]
    response = act(administrator, draft, "apply", htmx=False)

    assert page.differing == ("issues of agent ada was on, and is not set",)
    assert response.status_code == 303
    assert switches.current_value("ada", "issues") is None


def test_an_applied_draft_is_undone_as_one_change(administrator: Client) -> None:
    draft = drafts.save(
        WRITE,
        lambda write: (
            switches.flip(write, "ada", "issues", False),
            entries.change(write, "agent", "bob", {"title": "Bob"}),
        ),
    )
    before = belts.export()

    act(administrator, draft, "apply", htmx=False, confirm="yes")
    notice = administrator.get(f"/review/drafts/{draft.key}/").context["page"].notice
    dashboard.post(administrator, f"/audit/{notice.undo}/undo/", whole="yes")

    assert belts.export() == before
    assert administrator.get(f"/audit/?batch={draft.key}").context["page"].log_page.total == 2
    listed = administrator.get("/review/drafts/").context["page"]
    assert ([line.draft.key for line in listed.open], [line.draft.key for line in listed.applied]) == (
        [],
        [draft.key],
    )


def test_a_draft_is_observed_and_its_page_shows_the_report(administrator: Client) -> None:
    draft = of_ada()
    act(administrator, draft, "observe", days="7")
    facts = factories.facts("github__issue_read")
    recorded("github__issue_read", agent="ada", session="s1", would="slow", **facts)
    trial_rounds.run()

    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]
    line = administrator.get("/review/drafts/").context["page"].open[0]

    assert (page.trial.mode, page.trial.is_running, page.may_try, page.trial.rules) == (
        "observe",
        True,
        False,
        [("slow", 1)],
    )
    assert page.trial.report.proof.count("refused") == 1
    assert line.trial.mode == "observe"
    ends = trials.latest(draft.key).ends  # type: ignore[union-attr]
    act(administrator, draft, "observe", days="14")
    assert trials.latest(draft.key).ends > ends  # type: ignore[union-attr]
    assert page.may_extend
    act(administrator, draft, "observe", days="30")
    # The button of the page would make it shorter.
    assert not administrator.get(f"/review/drafts/{draft.key}/").context["page"].may_extend
    act(administrator, draft, "stop")
    assert administrator.get(f"/review/drafts/{draft.key}/").context["page"].may_try
    assert switches.current_value("ada", "issues") is True


def test_who_may_not_see_calls_sees_no_report(operator: Client) -> None:
    draft = of_ada()
    act(operator, draft, "observe", days="7")

    page = operator.get(f"/review/drafts/{draft.key}/").context["page"]

    assert (page.trial.is_running, page.trial.report, page.trial.rules) == (True, None, [])


def test_a_draft_is_scheduled_and_cancelled(administrator: Client) -> None:
    draft = of_ada()
    at = f"{timezone.localtime(clock.now() + dt.timedelta(hours=2)):%Y-%m-%dT%H:%M}"
    for wrong in ("", "soon", "2020-01-01T00:00"):
        assert act(administrator, draft, "schedule", at=wrong, htmx=False).status_code == 303
        assert trials.latest(draft.key) is None

    act(administrator, draft, "schedule", at=at)

    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]
    assert (page.trial.mode, page.trial.is_running, page.trial.author) == ("schedule", True, "root")
    act(administrator, draft, "stop")
    assert trials.latest(draft.key).state == "stopped"  # type: ignore[union-attr]


def in_arm(trial: trials.Trial, is_new: bool) -> str:
    rollout = agents.Rollout(trial=trial.pk, percent=trial.percent, changes="[]")
    names = (f"s{number}" for number in itertools.count())
    return next(name for name in names if rollouts.includes(rollout, "ada", name) is is_new)


def test_a_draft_is_rolled_out_and_pages_show_where_it_counts(administrator: Client) -> None:
    draft = of_ada()
    for wrong in (
        {"percent": "0", "days": "7"},
        {"percent": "5", "days": "91"},
        {"percent": "", "days": "7"},
    ):
        assert act(administrator, draft, "rollout", htmx=False, **wrong).status_code == 303
        assert trials.latest(draft.key) is None

    act(administrator, draft, "rollout", percent="50", days="7")

    trial = trials.latest(draft.key)
    assert trial is not None
    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]
    assert (page.trial.mode, page.trial.percent, page.trial.agents) == ("rollout", 50, ("ada",))
    assert (page.may_try, page.may_discard) == (False, False)
    assert administrator.get("/agents/ada/").context["page"].agent.trial.draft == draft.key
    for is_new in (True, False):
        session = in_arm(trial, is_new)
        preview = administrator.get("/agents/ada/preview/", {"session": session}).context["page"]
        assert (preview.trial is not None) is is_new
        call = recorded("shell", agent="ada", session=session, trial=trial.pk if is_new else None)
        called = administrator.get(f"/calls/{call.pk}/").context["page"]
        assert (called.trial is not None) is is_new
    act(administrator, draft, "stop")
    assert administrator.get("/agents/ada/").context["page"].agent.trial is None
    assert trials.latest(draft.key).state == "stopped"  # type: ignore[union-attr]


def test_a_draft_of_several_agents_is_rolled_out_to_one_of_them(administrator: Client) -> None:
    def change(write: writing.Write) -> None:
        for agent in ("ada", "bob"):
            switches.flip(write, agent, "releases", True)

    draft = drafts.save(WRITE, change)
    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]
    assert page.agents == ("ada", "bob")

    act(administrator, draft, "rollout", percent="100", days="7", agent="bob", confirm="yes")

    assert trials.latest(draft.key).agents == ("bob",)  # type: ignore[union-attr]


def test_the_page_says_why_a_draft_cannot_be_rolled_out(administrator: Client) -> None:
    draft = drafts.save(WRITE, lambda write: entries.change(write, "toolkit", "issues", {"policy": "Ask."}))

    page = administrator.get(f"/review/drafts/{draft.key}/").context["page"]

    assert (page.agents, "toolkit issues" in page.refusal, page.may_try) == ((), True, True)
    act(administrator, draft, "rollout", percent="5", days="7", confirm="yes")
    assert trials.latest(draft.key) is None


def test_the_review_names_a_draft_that_was_taken_back(administrator: Client) -> None:
    draft = of_ada()
    trials.roll_out(WRITE, draft.key)
    switches.flip(WRITE, "ada", "issues", None)
    trial_rounds.run()

    concerns = administrator.get("/review/").context["page"].concerns
    [concern] = [each for each in concerns if each.url == f"/review/drafts/{draft.key}/"]
    assert "issues of agent ada" in concern.about


def test_the_review_names_drafts_that_are_to_be_decided_about(administrator: Client) -> None:
    draft = of_ada()
    trials.observe(WRITE, draft.key)

    for state, note, about in (
        ("ended", "", "Apply it, or discard it."),
        ("stopped", "It is gone.", "It is gone."),
    ):
        models.Trial.objects.update(state=state, note=note)
        concerns = administrator.get("/review/").context["page"].concerns
        [concern] = [each for each in concerns if each.url == f"/review/drafts/{draft.key}/"]
        assert (concern.about, "was observed" in concern.title) == (about, not note)
    act(administrator, draft, "apply", confirm="yes")
    concerns = administrator.get("/review/").context["page"].concerns
    assert f"/review/drafts/{draft.key}/" not in [concern.url for concern in concerns]


def test_a_draft_is_discarded(administrator: Client) -> None:
    draft = of_ada()

    assert act(administrator, draft, "discard").headers["HX-Redirect"] == "/review/drafts/"
    assert administrator.get(f"/review/drafts/{draft.key}/").status_code == 404
    assert administrator.get(f"/review/drafts/{uuid.uuid4()}/").status_code == 404


@pytest.fixture
def former(db: None) -> Client:
    """Log in an operator whose role was taken away after she saved drafts."""
    return fast_fixtures.logged_in(get_user_model().objects.create_user("fay"))


def of_former(change: Any) -> drafts.Draft:
    return drafts.save(writing.by("fay", via="screen").replace(confirm=True), change)


def test_only_who_may_apply_a_draft_discards_it_while_it_is_tried(
    administrator: Client, former: Client
) -> None:
    draft = of_former(lambda write: switches.flip(write, "ada", "issues", False))
    at = f"{timezone.localtime(clock.now() + dt.timedelta(hours=2)):%Y-%m-%dT%H:%M}"
    act(administrator, draft, "schedule", at=at, confirm="yes")

    assert act(former, draft, "discard").status_code == 403
    assert not former.get(f"/review/drafts/{draft.key}/").context["page"].may_discard
    act(administrator, draft, "stop")

    act(former, draft, "discard")
    assert drafts.listed() == []


def test_an_author_who_may_not_read_what_a_draft_changes_sees_nothing_of_it(
    administrator: Client, former: Client
) -> None:
    entries.put(WRITE, "plugin", {"name": "srv", "namespace": "srv", "upstream": {"command": "true"}})
    draft = of_former(lambda write: entries.change(write, "plugin", "srv", {"title": "Server"}))
    trials.observe(WRITE, draft.key)
    entries.change(WRITE, "plugin", "srv", {"title": "Project Zero"})
    note = "title of plugin srv was not set, and is Project Zero"
    models.Trial.objects.update(state="stopped", note=note)

    page = former.get(f"/review/drafts/{draft.key}/")
    assert "Project Zero" not in page.content.decode()
    assert note not in page.content.decode()
    assert page.context["page"].differing == ("plugin srv is not as it was",)
    assert note in administrator.get(f"/review/drafts/{draft.key}/").content.decode()
    # They show the same to everyone.
    for address in ("/", "/review/"):
        assert note not in administrator.get(address).content.decode()
    [alert] = [each for each in events.of(attention.load()) if each.event == "draft-observed"]
    assert note not in alert.text


def test_previews_have_a_button_that_saves_a_draft(operator: Client, olive: auth.User) -> None:
    asked = dashboard.switch(operator, "releases", "true", "unset", agent="bob")
    menu = operator.get("/agents/ada/effect/issues/")

    button = 'formaction="/review/drafts/save/" name="draft_of" value="/agents/bob/switches/releases/"'
    assert button in dashboard.text(asked)
    assert 'formaction="/review/drafts/save/?draft_of=%2Fagents%2Fada%2Fswitches%2Fissues%2F"' in (
        dashboard.text(menu)
    )
    response = dashboard.post(
        operator, f"/review/drafts/save/?draft_of={SWITCH.replace('/', '%2F')}", on="false", was="true"
    )
    assert response.headers["HX-Redirect"] == f"/review/drafts/{saved().key}/"
