"""What does the page of one plugin show, and is only that approved which somebody saw?"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.plugins.upstream import listing
from tests.web import acting, servers
from toolbelt import models
from toolbelt.control.reports import queries
from toolbelt.control.servers import client_plugins, upstream_servers
from toolbelt.store import snapshots
from toolbelt.web.plugins import reviews
from toolbelt.web.plugins import view_model as plugins

pytestmark = pytest.mark.django_db

FILES = "/plugins/files/"


@pytest.fixture
def changed(belt: None) -> None:
    """Let a server change behind our back, and an agent have an override for a tool that got another name."""
    servers.changed()
    models.ToolOverride.objects.create(
        agent=factories.agent("dee"), tool=models.Tool.objects.get(key="files__list"), on=False
    )


def look(browser: Client, name: str = "files", **said: Any) -> Any:
    """Open the page; give what it shows."""
    return browser.get(f"/plugins/{name}/", said).context["page"]


def change(page: Any, key: str) -> Any:
    return next(one for one in page.review.changes if one.key == key)


def decide(browser: Client, decision: str, *keys: str, htmx: bool = True, **fields: Any) -> Any:
    address = f"{FILES}review/"
    return acting.post(browser, address, htmx=htmx, decision=decision, tool=servers.values(*keys), **fields)


def waiting(page: Any) -> list[str]:
    return [one.key for one in page.review.changes]


def test_what_may_cost_agents_something_comes_first_each_with_what_it_is(
    keeper: Client, changed: None
) -> None:
    review = look(keeper).review
    assert [(one.key, one.word) for one in review.changes] == [
        ("files__write", "changed"),
        ("files__ls", "renamed"),
        ("files__help", "new"),
    ]
    assert (review.flagged, review.renamed, review.later) == (1, True, 0)


def test_a_changed_tool_is_shown_field_by_field_against_what_was_approved(
    keeper: Client, changed: None
) -> None:
    write = change(look(keeper), "files__write")
    described, arguments = write.differences
    assert (described.label, arguments.label) == ("Description", "Arguments")
    old, new = described.text.shown
    assert (old.sign, new.sign) == ("−", "+")
    assert [piece.text for piece in new.pieces if piece.tone == "changed"] == [", or a link"]
    assert arguments.told == ("new optional argument mode",)
    assert "+" in {line.sign for line in arguments.text.shown}
    assert write.delta.startswith("+")
    assert not write.flags


def test_a_renamed_tool_names_what_it_was_and_who_named_it(keeper: Client, changed: None) -> None:
    renamed = change(look(keeper), "files__ls")
    assert "The same tool as files__list" in renamed.about
    assert renamed.users == "used by agent dee under its old name"


def test_texts_of_strangers_are_shown_and_do_nothing(keeper: Client, changed: None) -> None:
    html = keeper.get(FILES).content.decode()
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
    assert waiting(page) == ["files__ls", "files__help"]
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
    undone = acting.post(keeper, f"/changes/{page.notice.undo}/undo/", htmx=False, whole="yes")
    assert undone.status_code == 303
    assert waiting(look(keeper)) == ["files__write", "files__ls", "files__help"]
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


def test_all_that_is_shown_is_approved_once_somebody_has_said_that_orders_to_models_are_meant(
    keeper: Client, changed: None
) -> None:
    every = servers.values("files__write", "files__ls", "files__help")
    answer = acting.post(keeper, f"{FILES}review/", decision="approve-all", all=every)
    question = answer.context["confirmation"]
    assert question.title == "Approve 3 tools of files?"
    assert any("files__help overrules instructions" in reason for reason in question.reasons)
    assert len(waiting(look(keeper))) == 3
    again = {name: value for name, value in question.fields if name != "all"}
    acting.post(keeper, f"{FILES}review/", all=every, **again)
    assert waiting(look(keeper)) == []


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
    answer = acting.post(keeper, f"{FILES}review/", htmx=htmx, decision="approve", tool=seen)
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
    answer = acting.post(keeper, f"{FILES}review/", decision="approve", tool=seen, confirm="yes")
    assert answer.context["page"].notice.text == "Nothing was decided: files__help is no longer offered."


def test_what_is_kept_off_is_blocked_and_waits_no_longer(keeper: Client, changed: None) -> None:
    page = decide(keeper, "off", "files__help").context["page"]
    assert page.notice.text == "files__help rejected: blocked for everyone."
    assert servers.stored("files__help").blocked
    assert "files__help" not in waiting(page)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"decision": "approve"}, 422),
        ({"decision": "approve-all"}, 422),
        ({"decision": "burn", "tool": "files__write=sha256:0"}, 422),
        ({"decision": "approve", "tool": "files__write"}, 422),
        ({"decision": "approve", "tool": "shell=sha256:0"}, 409),
        ({"decision": "approve", "tool": "files__write=sha256:0"}, 409),
    ],
)
def test_a_form_that_makes_no_sense_decides_nothing(
    keeper: Client, changed: None, fields: dict[str, Any], status: int
) -> None:
    answer = acting.post(keeper, f"{FILES}review/", **fields)
    assert answer.status_code == status
    assert answer.context["page"].notice.text.startswith("Nothing was decided")
    assert len(waiting(look(keeper))) == 3
    assert acting.post(keeper, "/plugins/nobody/review/", **fields).status_code in (404, 422)


def test_who_may_not_approve_sees_what_there_is_to_look_at(viewer: Client, changed: None) -> None:
    html = acting.text(viewer.get(FILES))
    assert "3 to review" in html
    assert "Write a file" in html
    assert "Approve" not in html
    assert 'type="checkbox" name="tool"' not in html


def test_how_a_server_is_reached_is_for_those_who_may_see_plugins(
    keeper: Client, viewer: Client, changed: None
) -> None:
    assert look(viewer).reached is None
    assert "files.example" not in viewer.get(FILES).content.decode()
    facts = {fact.label: fact.parts[0].text for fact in look(keeper).reached.facts}
    assert facts["URL"] == "https://files.example/mcp"
    assert facts["Header"] == "Authorization: Bearer ${MCP_FILES}"


def test_what_a_server_said_of_itself_and_what_of_its_list_did_not_fit_is_told(
    keeper: Client, viewer: Client, belt: None
) -> None:
    servers.add()
    broken = listing.tool("bro\u202eken")
    servers.answer(servers.READ, broken, server="files 1.0", stderr="\x1b[31mno cache\x1b[0m")
    page = look(keeper)
    facts = {fact.label: fact.parts[0].text for fact in page.facts}
    assert (facts["Server name"], facts["Protocol"]) == ("files 1.0", "MCP 2025-06-18")
    assert "Its name holds characters that cannot be seen" in page.problems[0]
    assert page.stderr is not None
    assert look(viewer).stderr is None


def test_a_server_that_runs_as_a_command_is_changed_on_the_machine(keeper: Client, belt: None) -> None:
    reached = {"command": "uvx", "args": ["mcp-files", "a b"], "env": {"KEY": "${FILES_KEY}"}}
    upstream_servers.add(servers.SHELL.actor, "files", reached)
    page = look(keeper)
    assert page.reached.form is None
    line = ".venv/bin/python manage.py mcp add files '--env=KEY=${FILES_KEY}' --command uvx mcp-files 'a b'"
    assert page.reached.command == line


def test_the_url_and_the_headers_of_a_server_are_changed_by_a_form(keeper: Client, belt: None) -> None:
    servers.add(reached={"timeout": 5})
    was = look(keeper).reached.form["was"].value()
    fields = {"url": "https://other.example/mcp", "headers": "X-Team: blue", "was": was}
    answer = keeper.post(f"{FILES}connection/", fields)
    assert answer.status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.url, server.headers, server.timeout) == (
        "https://other.example/mcp",
        {"X-Team": "blue"},
        5,
    )
    again = keeper.post(f"{FILES}connection/", {**fields, "url": "https://third.example/mcp"})
    assert again.status_code == 409
    assert "Another operator" in again.content.decode()
    assert upstream_servers.servers()[0].connection.url == "https://other.example/mcp"


def test_who_shares_connections_is_changed_by_the_form(keeper: Client, belt: None) -> None:
    servers.add(reached={"timeout": 5, "idle": 60})
    form = look(keeper).reached.form
    assert [form[name].value() for name in ("sharing", "idle", "max_connections")] == [None, 60, None]
    fields = {"url": "https://files.example/mcp", "was": form["was"].value(), "sharing": "agent", "idle": ""}
    assert keeper.post(f"{FILES}connection/", {**fields, "max_connections": "3"}).status_code == 303
    server = upstream_servers.servers()[0].connection
    assert (server.sharing, server.idle, server.max_connections, server.timeout) == ("agent", 900, 3, 5)
    facts = [fact.parts[0].text for fact in look(keeper).reached.facts if fact.label == "Connections"]
    assert facts == ["One for each agent; at most 3 in each process"]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"sharing": "everyone"}, "sharing", "Select a valid choice"),
        ({"url": "gopher://files.example"}, "url", "begins with https://"),
        ({"headers": "X-Key: ${SECRET_KEY}"}, "url", "TOOLBELT_WEB_VARIABLES"),
        ({"headers": "Authorization: Basic abc"}, "headers", "write ${NAME} instead"),
        ({"was": "nonsense"}, "was", "valid JSON"),
    ],
)
def test_a_place_that_a_server_cannot_be_at_is_refused_at_the_field(
    keeper: Client, belt: None, fields: dict[str, str], field: str, said: str
) -> None:
    servers.add()
    was = look(keeper).reached.form["was"].value()
    answer = keeper.post(f"{FILES}connection/", {"url": "https://files.example/mcp", "was": was, **fields})
    assert answer.status_code == 422
    assert said in " ".join(answer.context["page"].reached.form.errors[field])


def test_tools_of_a_plugin_in_code_that_appeared_later_are_seen_and_follow_the_code(
    keeper: Client, belt: None
) -> None:
    models.Plugin.objects.filter(name="github").update(in_code=True)
    models.Tool.objects.filter(key="github__merge").update(seen=False)
    snapshots.forget()
    page = look(keeper, "github")
    assert [(one.key, one.word) for one in page.review.changes] == [("github__merge", "new")]
    value = page.review.changes[0].value
    acting.post(keeper, "/plugins/github/review/", decision="approve", tool=[value])
    tool = servers.stored("github__merge")
    assert (tool.seen, tool.approved) == (True, "")


def test_a_plugin_of_the_agents_own_program_says_when_it_was_declared_and_holds_its_tools(
    keeper: Client, belt: None
) -> None:
    assert ("Last declared", "never") in facts(look(keeper, "github"))
    tools = [{"name": "merge", "description": "Merge."}]
    client_plugins.declare(servers.SHELL.actor, "github", tools)
    page = look(keeper, "github")
    assert ("Declared", "1 tool") in facts(page)
    assert any(label == "Last declared" and said.startswith("just now") for label, said in facts(page))
    assert b"runs in the agent&#x27;s program" in keeper.get("/plugins/github/").content.replace(
        b"'", b"&#x27;"
    )


def facts(page: Any) -> list[tuple[str, str]]:
    """Return the facts on a plugin's page, as (label, text)."""
    return [(fact.label, "".join(part.text for part in fact.parts)) for fact in page.facts]


def test_each_tool_says_who_has_it_or_why_nobody_has(keeper: Client, changed: None) -> None:
    tools = {
        line.tool.key.rpartition("__")[2]: (line.state, line.word, line.users) for line in look(keeper).tools
    }
    assert tools["write"] == ("unavailable", "No agent", "changed since it was approved")
    assert tools["help"] == ("unavailable", "No agent", "new, and not reviewed yet")
    assert tools["read"] == ("dormant", "No agent", "")
    github = {line.tool.key.rpartition("__")[2]: line.users for line in look(keeper, "github").tools}
    assert github["issue_read"] == "ada, bob"


def test_a_server_with_hundreds_of_new_tools_is_looked_at_by_and_by(keeper: Client, belt: None) -> None:
    servers.add()
    servers.answer(*[listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(130)])
    page = look(keeper)
    assert (len(page.review.changes), page.review.later) == (reviews.MAX_AT_ONCE, 130 - reviews.MAX_AT_ONCE)
    assert (len(page.tools), page.more_tools) == (100, 30)
    assert len(look(keeper, all="yes").tools) == 130
    every = [one.value for one in page.review.changes]
    page = acting.post(keeper, f"{FILES}review/", decision="approve-all", all=every).context["page"]
    assert page.notice.text == f"{reviews.MAX_AT_ONCE} tools approved."
    assert page.review.later == 130 - 2 * reviews.MAX_AT_ONCE


def test_a_refresh_that_is_over_brings_the_review_with_it(keeper: Client, belt: None) -> None:
    servers.add()
    servers.answer(servers.READ)
    html = keeper.get(FILES, headers={**acting.HTMX, "HX-Target": "asking"}).content.decode()
    assert '<div id="review" hx-swap-oob="innerHTML">' in html
    assert "<html" not in html


def test_an_answer_that_comes_while_a_page_is_read_is_told_with_what_came_of_it_or_not_yet(
    keeper: Client, belt: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.add()
    real = snapshots.catalog

    def then_the_server_answers() -> Any:
        monkeypatch.setattr(snapshots, "catalog", real)
        read = real()
        servers.answer(servers.READ)
        return read

    asked = plugins.stamp(timezone.now() - dt.timedelta(seconds=1))
    monkeypatch.setattr(snapshots, "catalog", then_the_server_answers)
    page = look(keeper, asked=asked)
    assert (page.asking.under_way, page.plugin.waiting) == (True, 0)
    page = look(keeper, asked=asked)
    assert (page.asking.under_way, page.plugin.waiting) == (False, 1)


def test_a_plugin_that_is_not_there_is_a_404(viewer: Client, belt: None) -> None:
    assert viewer.get("/plugins/nobody/").status_code == 404


def test_it_asks_the_database_the_same_few_questions_however_many_tools_there_are(
    keeper: Client, changed: None
) -> None:
    look(keeper)
    of_three = acting.queries(lambda: look(keeper))
    more = [listing.tool(f"tool_{number:03}", f"Does {number}.") for number in range(50)]
    servers.answer(servers.READ, servers.WRITE_NOW, servers.LIST_NOW, *more)
    look(keeper)
    assert look(keeper).plugin.waiting == 52
    assert acting.queries(lambda: look(keeper)) == of_three <= 22


def test_every_decision_is_kept_with_its_reason(keeper: Client, changed: None) -> None:
    decide(keeper, "approve", "files__write", reason="Read line by line.")
    entry = queries.changes(kind="tool", name="files__write", size=1).entries[0]
    assert (entry.reason, entry.via) == ("Read line by line.", "screen")
