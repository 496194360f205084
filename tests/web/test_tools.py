"""Tests of the list of tools, a tool's page, and their query counts."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import dashboard, servers
from toolbelt import models
from toolbelt.control.servers import upstream_servers
from toolbelt.core.rules import reasons
from toolbelt.store import snapshots

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

READ = "/tools/github__issue_read/"
BLOCK = "/tools/github__issue_read/block/"
EVERY = ["clock__now", "github__issue_read", "github__issue_write", "github__merge", "papers", "shell"]


@pytest.fixture
def tool_manager(operator: Client, olive: auth.User) -> Client:
    """Return the browser of an operator who may also change tools and view calls."""
    for codename in ("change_tool", "view_callrecord"):
        olive.user_permissions.add(auth.Permission.objects.get(codename=codename))
    return operator


def listed(browser: Client, **query: Any) -> Any:
    return browser.get("/tools/", query).context["page"]


def open_page(browser: Client, key: str = "github__issue_read") -> Any:
    return browser.get(f"/tools/{key}/").context["page"]


def keys(page: Any) -> list[str]:
    return [line.tool.key for line in page.tools]


def test_each_row_shows_risk_plugin_toolkits_and_state(viewer: Client) -> None:
    read = listed(viewer).tools[1]
    assert (read.tool.key, read.tool.plugin) == ("github__issue_read", "github")
    html = dashboard.text(viewer.get("/tools/", {"q": "github__issue_read"}))
    assert '<span class="risk read-only">' in html
    assert (
        '/toolkits/issues/">Issues and reviews</a>, <a class="kit" href="/toolkits/releases/">releases<'
        in html
    )
    assert '<p class="state" data-state="active">Available</p> </div>' in html


def test_each_row_shows_its_agents_and_call_statistics(tool_manager: Client, viewer: Client) -> None:
    for outcome, duration, days in (("ok", 100, 0), ("tool-failed", 900, 1), ("ok", 100, 2), ("ok", 5, 40)):
        models.CallRecord.objects.create(
            tool="shell",
            agent="ada",
            at=timezone.now() - dt.timedelta(days=days),
            outcome=outcome,
            duration_ms=duration,
        )
    page = listed(tool_manager)
    lines = {line.tool.key: line for line in page.tools}
    assert (page.since, lines["shell"].agents, lines["papers"].agents) == ("30 days", 1, 0)
    assert lines["papers"].called is None
    html = dashboard.text(tool_manager.get("/tools/?q=shell"))
    assert '<a href="/calls/?tool=shell">3 calls</a>' in html
    assert "33 % errors, p95 900 ms" in html
    assert "1 agent</a>" in html
    assert 'last <time datetime="' in html
    # Call statistics require permission to view calls.
    assert "Calls in" not in dashboard.text(viewer.get("/tools/"))
    assert listed(viewer).since == ""


def test_query_count_does_not_grow_with_tools_agents_and_calls(tool_manager: Client, more_tools: Any) -> None:
    listed(tool_manager)
    before = dashboard.count_queries(lambda: listed(tool_manager))
    more_tools(60)
    for number in range(40):
        factories.agent(f"agent-{number}")
        models.CallRecord.objects.create(
            tool=f"extra_{number}", agent="ada", at=timezone.now(), outcome="ok", duration_ms=number
        )
    listed(tool_manager)
    assert dashboard.count_queries(lambda: listed(tool_manager)) == before <= 16


def test_unavailable_and_blocked_tools_show_the_reason(viewer: Client) -> None:
    models.Tool.objects.filter(key="papers").update(seen=False)
    models.Tool.objects.filter(key="shell").update(blocked=True)
    html = dashboard.text(viewer.get("/tools/"))
    for state, word, reason in (
        ("unavailable", "Unavailable", "new, and not reviewed yet"),
        ("denied", "Blocked", "tool shell is blocked for everyone"),
    ):
        assert f'data-state="{state}">{word}</p> <p class="reason">{reason}</p>' in html


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, EVERY),
        ({"q": "ISSUE"}, ["github__issue_write", "github__issue_read"]),
        ({"q": "tells the"}, ["clock__now"]),
        ({"plugin": "acme.clock"}, ["clock__now"]),
        ({"plugin": "-"}, ["papers", "shell"]),
        ({"plugin": "nothing"}, []),
        ({"risk": "writes"}, ["github__issue_write"]),
        ({"risk": "destructive"}, ["github__merge"]),
        ({"risk": "unstated"}, ["shell"]),
        ({"risk": "nonsense"}, EVERY),
        ({"state": "default"}, ["shell"]),
        ({"state": "blocked"}, []),
        ({"state": "available"}, EVERY),
        ({"state": "nonsense"}, EVERY),
        ({"plugin": "github", "risk": "read-only"}, ["github__issue_read"]),
        ({"sort": "-tool"}, EVERY[::-1]),
        ({"sort": "plugin"}, ["papers", "shell", "clock__now", *EVERY[1:4]]),
    ],
)
def test_the_list_is_filtered_and_sorted_by_query_parameters(
    viewer: Client, query: dict[str, str], expected: list[str]
) -> None:
    assert keys(listed(viewer, **query)) == expected


def test_a_search_ranks_tools_like_an_agents_search(viewer: Client) -> None:
    models.Tool.objects.filter(key="clock__now").update(
        description="Also opens what is to merge, in the end."
    )
    # Updates without save() are only noticed after the next change of the catalog.
    factories.tool("zz_other")
    assert keys(listed(viewer, q="merge")) == ["github__merge", "clock__now"]
    assert keys(listed(viewer, q="merge", sort="tool")) == ["clock__now", "github__merge"]


def test_a_search_finds_tools_that_do_not_contain_its_words_together(viewer: Client) -> None:
    factories.tool("slack__post_message", description="Sends a message to a channel.")
    factories.tool("billing__create", title="New invoice", description="Bills a customer.")
    factories.tool("zz_other")
    assert keys(listed(viewer, q="post to slack"))[0] == "slack__post_message"
    assert keys(listed(viewer, q="create invoice"))[0] == "billing__create"
    assert keys(listed(viewer, q="create invoice", plugin="github")) == []
    assert sorted(keys(listed(viewer, q="issue_"))) == ["github__issue_read", "github__issue_write"]
    assert keys(listed(viewer, q="xyzzy")) == []


def test_the_list_the_dialog_and_the_pickers_rank_tools_alike(viewer: Client) -> None:
    factories.tool("zz_other")
    for text in ("issue", "read an issue", "merge a pull request", "papers"):
        in_list = keys(listed(viewer, q=text))
        groups = viewer.get("/search/", {"q": text}).context["page"].groups
        [found] = [group.results for group in groups if group.title == "Tools"]
        options = dashboard.text(viewer.get("/search/tools/", {"q": text}))
        assert [result.key or result.title for result in found] == in_list[:7], text
        assert re.findall(r'data-value="([^"]+)"', options) == in_list, text


def test_the_state_filter_distinguishes_unavailable_blocked_and_available(viewer: Client) -> None:
    models.Plugin.objects.filter(name="github").update(active=False)
    models.Tool.objects.filter(key="shell").update(blocked=True)
    assert keys(listed(viewer, state="unavailable")) == EVERY[1:4]
    assert keys(listed(viewer, state="blocked")) == ["shell"]
    assert keys(listed(viewer, state="available")) == ["clock__now", "papers"]


def test_the_list_is_paginated_and_pages_keep_the_filter(viewer: Client, more_tools: Any) -> None:
    more_tools(120)
    page = listed(viewer, q="extra")
    assert (len(page.tools), page.pages.words, page.pages.newer_url) == (50, "1 to 50 of 120", "")
    assert page.pages.older_url == "/tools/?q=extra&offset=50"
    page = listed(viewer, q="extra", offset=100)
    assert (len(page.tools), page.pages.words, page.pages.older_url) == (20, "101 to 120 of 120", "")
    assert page.pages.newer_url == "/tools/?q=extra&offset=50"
    # An offset beyond the end shows the last page.
    page = listed(viewer, q="extra", offset=10**6)
    assert (len(page.tools), page.pages.words) == (20, "101 to 120 of 120")


def test_column_headings_toggle_the_sort_order(viewer: Client) -> None:
    tool, plugin, tokens = listed(viewer).columns
    assert (tool.order, tool.url) == ("ascending", "/tools/?sort=-tool")
    assert (plugin.order, plugin.url, tokens.url) == ("", "/tools/?sort=plugin", "/tools/?sort=-tokens")
    assert listed(viewer, sort="-tokens").columns[2].url == "/tools/?sort=tokens"


def test_an_htmx_filter_request_returns_only_the_table_and_count(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/tools/", {"q": "papers"}, headers=dashboard.HTMX))
    assert '<p id="matches" hx-swap-oob="innerHTML">1 tool,' in html
    assert "<html" not in html
    assert "No matching tools" in dashboard.text(viewer.get("/tools/", {"q": "nothing"}))


def test_a_tools_page_lists_its_agents_and_those_without_it(viewer: Client) -> None:
    page = open_page(viewer, "clock__now")
    (agent, decision), on_request = page.agents
    assert (agent, decision.state, reasons.explain(decision)) == ("ada", "active", "its override is on")
    html = dashboard.text(viewer.get("/tools/clock__now/"))
    assert '<a href="/agents/ada/?q=clock__now">ada</a>' in html
    # Bob can load it, so he is not listed among the agents without it.
    assert (on_request[0], on_request[1].state, page.others) == ("bob", "discoverable", ())
    assert "on for <strong>1 of 2</strong> agents, on request for <strong>1</strong>" in html
    assert [agent for agent, _ in open_page(viewer, "github__merge").others] == ["ada"]


def test_a_tools_page_shows_why_no_agent_can_use_it(viewer: Client) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed")
    assert "<strong>Unavailable</strong> for all agents: plugin github has failed." in dashboard.text(
        viewer.get(READ)
    )
    assert open_page(viewer).agents == ()


def test_the_input_schema_is_listed_as_arguments(viewer: Client) -> None:
    schema = {
        "type": "object",
        "required": ["repo"],
        "properties": {
            "repo": {"type": "string", "description": "Which one.", "maxLength": 40},
            "state": {"enum": ["open", "closed"], "default": "open"},
            "labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
        },
        "$defs": {"label": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}},
    }
    models.Tool.objects.filter(key="github__issue_read").update(input_schema=schema)
    labels, name, repo, state = open_page(viewer).arguments
    assert (repo.path, repo.kind, repo.required, repo.about, repo.limits) == (
        "repo",
        "string",
        True,
        "Which one.",
        "maximum length 40",
    )
    assert (state.kind, state.required, state.limits) == ('"open" | "closed"', False, 'default "open"')
    assert (labels.kind, name.path, name.depth, name.kind) == (
        "list of object",
        "labels[].name",
        1,
        "string or null",
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}, "b": True, "c": {"type": 7, "items": []}}},
        {"type": "object", "properties": [], "required": 3},
        {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/nowhere"}, 1]}}, "required": [{}]},
    ],
)
def test_a_malformed_schema_does_not_break_the_page(viewer: Client, schema: dict[str, Any]) -> None:
    models.Tool.objects.filter(key="github__issue_read").update(input_schema=schema)
    assert viewer.get(READ).status_code == 200


def test_an_endless_schema_is_truncated(viewer: Client) -> None:
    wide = {"type": "object", "properties": {f"a{number}": {"$ref": "#"} for number in range(200)}}
    models.Tool.objects.filter(key="github__issue_read").update(input_schema=wide)
    page = open_page(viewer)
    assert (len(page.arguments), page.has_more_arguments) == (80, True)


def test_recursive_choices_are_resolved_only_a_few_levels_deep(viewer: Client) -> None:
    twice = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    circle = {"anyOf": [{"$ref": "#/$defs/circle"}, {"type": "integer"}]}
    models.Tool.objects.filter(key="github__issue_read").update(
        input_schema={
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"$ref": "#/$defs/circle"}},
            "$defs": {**twice, "circle": circle},
        }
    )

    page = open_page(viewer)

    assert [argument.kind for argument in page.arguments] == ["anything", "anything or integer or integer"]


def test_hostile_texts_are_escaped(viewer: Client) -> None:
    evil, turned = "<script>alert(1)</script>", "safe\u202eelif"
    schema = {"type": "object", "properties": {evil: {"description": evil, "default": evil}}}
    models.Tool.objects.filter(key="github__issue_read").update(
        title=evil, description=f"{evil} {turned}", input_schema=schema
    )
    for address in ("/tools/", READ):
        html = viewer.get(address).content.decode()
        assert evil not in html
        assert "\u202e" not in html
        assert "U+202E" in html


def test_call_statistics_require_permission(tool_manager: Client, viewer: Client) -> None:
    assert "no recorded calls" in dashboard.text(tool_manager.get(READ))
    for outcome in ("ok", "ok", "tool-failed"):
        models.CallRecord.objects.create(
            agent="ada", tool="github__issue_read", outcome=outcome, duration_ms=5, at=timezone.now()
        )
    link = '<a href="/calls/?tool=github__issue_read">3 calls, 1 error, last just now</a>'
    assert link in dashboard.text(tool_manager.get(READ))
    html = dashboard.text(viewer.get(READ))
    assert open_page(viewer).called is None
    assert "no recorded calls" not in html
    assert "3 calls" not in html


def test_a_tool_is_blocked_for_everyone_and_unblocked(tool_manager: Client) -> None:
    html = dashboard.text(dashboard.post(tool_manager, BLOCK, on="true", was="false", next=READ))
    assert "github__issue_read is blocked for everyone." in html
    assert "<strong>Blocked</strong> for all agents" in html
    assert "No agent can use this tool." in html
    html = dashboard.text(dashboard.post(tool_manager, "/tools/clock__now/block/", on="true", was="false"))
    assert "2 agents can no longer use it (1 had it on, 1 on request)" in html
    response = dashboard.post(tool_manager, BLOCK, htmx=False, on="false", was="true", next=READ)
    assert (response.status_code, response.headers["Location"]) == (303, READ)
    assert open_page(tool_manager).tool.blocked is False
    assert dashboard.post(tool_manager, "/tools/nothing/block/", on="true", was="false").status_code == 404


def test_a_viewer_is_not_offered_blocking(viewer: Client) -> None:
    html = dashboard.text(viewer.get(READ))
    assert "Block for everyone" not in html
    assert "Edit in the admin" not in html
    assert viewer.get("/tools/nothing/").status_code == 404


def test_query_counts_do_not_grow_with_tools_and_agents(tool_manager: Client, more_tools: Any) -> None:
    def cost(address: str) -> int:
        tool_manager.get(address)
        return dashboard.count_queries(lambda: tool_manager.get(address))

    before = cost("/tools/"), cost(READ)
    more_tools(60)
    for number in range(9):
        factories.agent(f"agent-{number}")
    assert (cost("/tools/"), cost(READ)) == before
    assert max(before) <= 18


def test_unused_tools_are_filtered_and_counted_on_the_overview(tool_manager: Client) -> None:
    factories.call("github__issue_read")
    factories.call("shell", days_ago=40)
    models.Tool.objects.filter(key="papers").update(retired=True)
    factories.tool("zz_other")

    page = listed(tool_manager, called="no")

    uncalled = [key for key in [*EVERY, "zz_other"] if key not in ("github__issue_read", "papers")]
    assert keys(page) == uncalled
    assert [choice.label for choice in page.called] == ["Called or not", "Not called in 30 days"]
    assert tool_manager.get("/").context["page"].uncalled == f"{len(uncalled)} tools not called in 30 days"
    assert '<a href="/tools/?called=no">' in tool_manager.get("/").content.decode()
    assert f"All tools that were not called, on or off: {len(uncalled)}" in dashboard.text(
        tool_manager.get("/calls/?view=unused")
    )


def test_a_bulk_change_of_unused_tools_affects_no_others(tool_manager: Client) -> None:
    for key in EVERY:
        if key not in ("papers", "shell"):
            factories.call(key)

    question = tool_manager.get("/bulk/tools/?called=no&every=yes&set=tools-true&for=ada").context[
        "confirmation"
    ]

    assert dict(question.fields)["seen"] == '{"ada": {"papers": null, "shell": null}}'


def test_the_unused_filter_is_ignored_without_permission_to_view_calls(viewer: Client) -> None:
    factories.call("shell")
    page = listed(viewer, called="no")
    assert keys(page) == EVERY
    assert not page.called


@pytest.mark.parametrize("on", [True, False])
def test_the_approved_description_of_a_tool_is_kept_or_follows_its_server(
    tool_manager: Client, on: bool
) -> None:
    servers.add()
    servers.answer(servers.READ)
    servers.approve()
    models.Tool.objects.filter(key="files__read").update(keep_description=not on)
    button = "Keep the approved description" if on else "Follow the server again"
    assert button in tool_manager.get("/tools/files__read/").content.decode()

    words = {True: "true", False: "false"}
    response = dashboard.post(
        tool_manager, "/tools/files__read/description/", htmx=False, on=words[on], was=words[not on]
    )

    assert response.status_code == 303
    assert servers.stored("files__read").keep_description is on
    assert dashboard.latest_entry().after == {"keep_description": True if on else None}


def test_an_operator_changes_the_labels_of_a_tool_as_the_page_showed_them(tool_manager: Client) -> None:
    servers.add()
    servers.answer(servers.READ)
    servers.approve()
    page, path = "/tools/files__read/", "/tools/files__read/labels/"
    assert f'action="{path}"' in tool_manager.get(page).content.decode()

    def label(brings: str, was: str = "") -> tuple[str, ...]:
        assert dashboard.post(tool_manager, path, htmx=False, brings=brings, was=was).status_code == 303
        found: tuple[str, ...] = servers.stored("files__read").brings
        return found

    assert label("private, untrusted") == ("private", "untrusted")
    assert dashboard.latest_entry().after == {"brings": ["private", "untrusted"]}
    # As someone else saw it before, and a label that is none.
    assert label("private") == ("private", "untrusted")
    assert label("Label!", was="private untrusted") == ("private", "untrusted")
    assert "Label!" in dashboard.text(tool_manager.get(page))
    assert label("", was="private untrusted") == ()


def test_a_tool_that_differs_between_processes_is_shown_as_agents_have_it(viewer: Client) -> None:
    servers.add()
    servers.answer(servers.READ)
    servers.approve()
    other = {**servers.READ, "description": "Read a file of web-7."}
    servers.answer(other, again=(upstream_servers.ServerListing(tools=(servers.READ,)),))
    html = viewer.get("/tools/files__read/").content.decode()
    assert "Read a file." in html
    assert "web-7" not in html


def test_the_arguments_to_record_are_chosen_on_the_page_of_the_tool(
    plugin_manager: Client, belt: None
) -> None:
    address = "/tools/github__merge/recorded/"

    dashboard.post(plugin_manager, address, paths="number, title", was="")
    stored = snapshots.catalog().tools["github__merge"]
    assert stored.recorded_fields == ("number", "title")

    page = plugin_manager.get("/tools/github__merge/", {"record": "title state"}).context["page"]
    assert (page.recorded, page.record) == ("number title", "number title state")
    # Of someone who saw the page before, and with the name of a secret.
    dashboard.post(plugin_manager, address, paths="other", was="")
    dashboard.post(plugin_manager, address, paths="password", was="number title")
    assert snapshots.catalog().tools["github__merge"].recorded_fields == ("number", "title")
    dashboard.post(plugin_manager, address, paths="", was="number title")
    assert snapshots.catalog().tools["github__merge"].recorded_fields == ()
