"""Tests of the search dialog and page: their results and actions, and that they change nothing."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.access import access_index
from toolbelt.control.catalog import entries
from toolbelt.core.search import current, engine
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def results_by_group(browser: Client, text: str) -> dict[str, list[Any]]:
    page = browser.get("/search/", {"q": text}).context["page"]
    return {group.title: list(group.results) for group in page.groups}


def titles(browser: Client, text: str, kind: str) -> list[str]:
    return [result.key or result.title for result in results_by_group(browser, text).get(kind, [])]


def test_agents_toolkits_tools_and_pages_are_found_by_name(operator: Client) -> None:
    assert titles(operator, "ada", "Agents")[0] == "ada"
    assert titles(operator, "ISSUES", "Toolkits")[0] == "issues"
    assert titles(operator, "shell", "Tools")[0] == "shell"
    assert titles(operator, "audit", "Pages") == ["Audit log"]
    assert titles(operator, "who changed", "Pages") == ["Audit log"]


def test_tools_are_ranked_like_an_agents_search_and_toolkits_by_their_tools(operator: Client) -> None:
    stored = access_index.catalog_view().catalog
    results = titles(operator, "read an issue", "Tools")
    assert results
    assert results == [hit.tool for hit in engine.search(stored, stored.tools, "read an issue", len(results))]
    assert "issues" in titles(operator, "read an issue", "Toolkits")


def test_archived_agents_are_not_found(operator: Client) -> None:
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"archived": True})
    assert "ada" not in titles(operator, "ada", "Agents")


def test_an_empty_search_lists_the_pages_that_the_user_may_open(viewer: Client, admin_client: Client) -> None:
    shown = {result.title: result.url for result in results_by_group(viewer, "")["Pages"]}
    assert {"Overview", "Review", "Matrix", "Audit log"} <= set(shown)
    assert not {"New agent", "Tokens", "System status"} & set(shown)
    assert all(viewer.get(url).status_code == 200 for url in shown.values())
    everything = {result.title: result.url for result in results_by_group(admin_client, "")["Pages"]}
    assert {"New agent", "Tokens", "System status"} <= set(everything)
    assert all(admin_client.get(url).status_code == 200 for url in everything.values())


@pytest.mark.parametrize("text", ["turn off issues for ada", "issues off", "off issues for ada?"])
def test_a_command_offers_an_action_and_changes_nothing(operator: Client, text: str) -> None:
    before = dashboard.stored_agent()
    actions = results_by_group(operator, text).get("Actions", [])
    if "for" in text:
        assert actions[0].title == "Turn off Issues and reviews for ada"
        response = operator.get(actions[0].url)
        question = response.context["confirmation"]
        assert (response.status_code, question.title) == (
            200,
            "Turn off Issues and reviews `issues` for ada?",
        )
        assert question.effect.tools[1] < question.effect.tools[0]
    assert dashboard.stored_agent() == before


def test_an_exactly_named_plugin_is_listed_first(operator: Client, viewer: Client) -> None:
    assert next(iter(results_by_group(operator, "github"))) == "Servers & plugins"
    actions = results_by_group(operator, "turn off github for ada")["Actions"]
    assert actions[0].title == "Turn off all tools of GitHub for ada"
    assert operator.get(actions[0].url).context["confirmation"].title.startswith("Turn off ")
    for_all = [result.title for result in results_by_group(operator, "turn off github")["Actions"]]
    assert "Turn off all tools of GitHub for all agents …" in for_all
    assert not [
        result
        for result in results_by_group(viewer, "turn off github")["Actions"]
        if "for all" in result.title
    ]


def test_a_block_command_links_to_the_page_with_the_block_button(
    plugin_manager: Client, operator: Client
) -> None:
    actions = results_by_group(plugin_manager, "block issues for everyone")["Actions"]
    assert [(action.title, action.url) for action in actions][:1] == [
        ("Block toolkit Issues and reviews for everyone …", "/toolkits/issues/")
    ]
    assert "Actions" not in results_by_group(plugin_manager, "unblock shell")
    models.Tool.objects.filter(key="shell").update(blocked=True)
    assert results_by_group(plugin_manager, "unblock shell")["Actions"][0].title == "Unblock tool shell …"
    assert "Actions" not in results_by_group(operator, "block issues")


def test_a_toolkit_whose_tools_only_share_a_word_is_not_found(operator: Client) -> None:
    for number in range(3):
        factories.tool(f"papers_{number}", description="Finds papers.")
    factories.toolkit(
        "boats", factories.tool("boats", description="Rents boats, with their papers, by the day.")
    )
    assert "boats" in titles(operator, "papers", "Tools")
    assert "boats" not in titles(operator, "finds papers", "Toolkits")


def test_confirming_the_flip_turns_the_toolkit_off(operator: Client) -> None:
    question = operator.get("/flip/?agent=ada&key=issues&on=off").context["confirmation"]
    response = operator.post(question.action, {**dict(question.fields), "reason": "Too many."})
    assert (response.status_code, urlsplit(response.headers["Location"]).path) == (303, "/agents/ada/")
    assert dashboard.stored_agent().switches["issues"] is False
    assert dashboard.latest_entry().reason == "Too many."


def test_flipping_a_tool_is_confirmed_as_an_override(operator: Client) -> None:
    question = operator.get("/flip/?agent=ada&key=shell&on=on").context["confirmation"]
    assert question.action == "/agents/ada/overrides/shell/"


def test_a_viewer_is_not_offered_flips(viewer: Client) -> None:
    assert "Actions" not in results_by_group(viewer, "turn off issues for ada")
    assert viewer.get("/flip/?agent=ada&key=issues&on=off").status_code == 403


@pytest.mark.parametrize(
    "query",
    ["", "agent=ada&key=nothing&on=off", "agent=nobody&key=issues&on=off", "agent=ada&key=issues&on=x"],
)
def test_an_invalid_flip_is_not_found(operator: Client, query: str) -> None:
    assert operator.get(f"/flip/?{query}").status_code == 404


def test_a_why_question_links_to_the_explanation_for_the_agent(operator: Client) -> None:
    for text in ("why is shell off for ada", "Why can't ada use shell?"):
        action = results_by_group(operator, text)["Actions"][0]
        assert action.title == "Why is shell on or off for ada?"
        assert operator.get(action.url).context["page"].now.why.tool == "shell"


@pytest.mark.parametrize("word", ["connect", "preview", "sessions", "history", "settings"])
def test_a_page_name_with_an_agent_links_to_the_agents_page(operator: Client, word: str) -> None:
    (action,) = results_by_group(operator, f"{word} ada")["Actions"]
    assert action.url == f"/agents/ada/{word}/"


def test_search_text_and_server_texts_are_escaped(operator: Client) -> None:
    entries.change(OPERATOR.replace(confirm=True), "tool", "shell", {"title": "<b>shell</b>"})
    html = operator.get("/search/", {"q": "shell <script>"}).content.decode()
    assert "<script>" not in html.partition("<main")[2]
    assert "&lt;b&gt;shell&lt;/b&gt;" in html


def test_the_dialog_has_options_and_the_page_has_links(operator: Client) -> None:
    options = operator.get("/search/", {"q": "ada"}, headers=dashboard.HTMX).content.decode()
    assert '<a class="jump-result" href="/agents/ada/" id="jump-0" role="option"' in options
    assert 'id="jump-status" hx-swap-oob="innerHTML">' in options
    links = dashboard.text(operator.get("/search/", {"q": "ada"}))
    assert '<a class="jump-result" href="/agents/ada/">' in links


def test_query_count_does_not_grow_with_the_catalog(operator: Client, more_tools: Any) -> None:
    def open_page() -> Any:
        return operator.get("/search/", {"q": "turn off issues for ada"}, headers=dashboard.HTMX)

    open_page()
    of_few = dashboard.count_queries(open_page)
    more_tools(50)
    open_page()
    assert dashboard.count_queries(open_page) == of_few


def test_combobox_options_are_the_matching_tools(viewer: Client) -> None:
    def options(text: str) -> list[str]:
        return re.findall(r'data-value="([^"]+)"', dashboard.text(viewer.get("/search/tools/", {"q": text})))

    assert options("issue_w")[0] == "github__issue_write"
    assert "papers" in options("scientific papers")
    assert options("shell, papers") == ["shell, papers"]
    assert options("search papers")[0] == "papers"
    assert options(" ") == []
    assert "No matching tools" in dashboard.text(viewer.get("/search/tools/", {"q": "xyzzy"}))
    listed = dashboard.text(viewer.get("/search/tools/", {"q": "shell papers shel"}))
    assert "Add 2 tools" in listed
    assert "No tool is called shel" in listed


def test_a_truncated_result_list_says_so(operator: Client, more_tools: Any) -> None:
    def groups(text: str) -> dict[str, str]:
        return {
            group.title: group.more for group in operator.get("/search/", {"q": text}).context["page"].groups
        }

    assert groups("shell") == dict.fromkeys(groups("shell"), "")
    more_tools(50)
    current.wait()
    assert groups("extra")["Tools"] == "best 7 of at least 30"
    assert "best 7 of at least 30" in dashboard.text(operator.get("/search/", {"q": "extra"}))
    options = dashboard.text(operator.get("/search/tools/", {"q": "extra"}))
    assert "Showing the best 20. Type more to narrow them down." in options


@pytest.mark.parametrize("headers", [{}, dashboard.HTMX], ids=["page", "part"])
@pytest.mark.parametrize("path", ["/search/", "/tools/"])
def test_a_long_query_is_truncated_with_a_note(operator: Client, path: str, headers: dict[str, str]) -> None:
    def shown(text: str) -> str:
        return operator.get(path, {"q": text}, headers=headers).content.decode()

    assert "were used" not in shown("issue " * 33)
    long = shown("issue " * 50)
    assert "Only the first 33 words were used." in long
    assert "Only the first 200 characters were used." in shown("x" * 300)
    # Regression: a long query was ignored, and every tool or page was shown.
    assert "clock__now" not in shown("xyzzy " * 50)
    assert "Audit log</span>" not in long


@pytest.mark.parametrize(
    "path", ["/agents/", "/toolkits/", "/plugins/", "/tokens/", "/matrix/", "/agents/ada/", "/tools/"]
)
def test_every_list_notes_a_truncated_filter(admin_client: Client, belt: None, path: str) -> None:
    note = "Only the first 33 words were used."
    for headers in ({}, dashboard.HTMX):
        assert note in admin_client.get(path, {"q": "issue " * 50}, headers=headers).content.decode()
    assert note not in admin_client.get(path, {"q": "issue"}).content.decode()
