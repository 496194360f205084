"""Search over tools: words of names, texts and toolkits, weighed by how rare they are."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import search

STORED = building.catalog_of(
    [
        building.tool("git__list_issues", description="List the issues of a repository."),
        building.tool("git__createPullRequest", description="Open a pull request."),
        building.tool("files__read", title="Read a file", description="Read text from a path."),
        building.tool("files__write", description="Write text to a path."),
        building.tool("ci__status", description=""),
    ],
    toolkits=[building.toolkit("ship", "ci__status", title="Deployment")],
)


def found(text: str, among: str = "", limit: int = 10) -> list[str]:
    return [hit.tool for hit in search.search(STORED, among.split() or list(STORED.tools), text, limit)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("issue", "git__list_issues"),
        ("listing issues", "git__list_issues"),
        ("create a pull request", "git__createPullRequest"),
        ("PULL", "git__createPullRequest"),
        ("read", "files__read"),
        ("deployments", "ci__status"),
    ],
)
def test_a_tool_is_found_by_what_it_does(query: str, first: str) -> None:
    assert found(query)[0] == first


def test_only_the_tools_that_were_given_are_searched() -> None:
    assert found("text path", among="files__write") == ["files__write"]


def test_nothing_is_found_where_no_word_is_held() -> None:
    assert found("xylophone") == []
    assert found("") == []
    assert found("!?") == []


def test_words_that_say_nothing_find_nothing_beside_words_that_do() -> None:
    assert found("how can i use the pull tool") == ["git__createPullRequest"]


def test_equal_scores_come_in_key_order_and_no_more_than_asked_for() -> None:
    twins = building.catalog_of(
        [building.tool("b", description="same"), building.tool("a", description="same")]
    )
    assert [hit.tool for hit in search.search(twins, twins.tools, "same", 10)] == ["a", "b"]
    assert len(search.search(twins, twins.tools, "same", 1)) == 1


def test_a_hit_says_which_words_of_the_query_it_holds() -> None:
    (hit,) = search.search(STORED, ["files__read"], "reading files quickly", 10)
    assert hit.matched == ("reading", "files")
    assert hit.score > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git__list_issues", ["git", "list", "issues"]),
        ("createPullRequest", ["create", "pull", "request"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("部署 status", ["部署", "status"]),
    ],
)
def test_names_are_split_at_their_seams(text: str, words: list[str]) -> None:
    assert search.words_of(text) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("issues", "issue"),
        ("listing", "list"),
        ("queries", "query"),
        ("created", "create"),
        ("passes", "pass"),
    ],
)
def test_common_endings_do_not_part_words(one: str, other: str) -> None:
    assert search.stem(one) == search.stem(other)


def test_an_empty_catalog_answers_nothing() -> None:
    empty = building.catalog_of()
    assert search.search(empty, [], "anything", 10) == ()
