"""Tests of tool search: by words, by meaning, and only among the tools that the agent may have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core import building
from toolbelt.core.search import engine, queries, vectors
from toolbelt.core.search import words as words_

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


def found_keys(text: str, among: str = "", limit: int = 10) -> list[str]:
    return [hit.tool for hit in engine.search(STORED, among.split() or list(STORED.tools), text, limit)]


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
    assert found_keys(query)[0] == first


def test_only_the_given_tools_are_searched() -> None:
    assert found_keys("text path", among="files__write") == ["files__write"]


def test_a_query_without_known_words_finds_nothing() -> None:
    assert found_keys("xylophone") == []
    assert found_keys("") == []
    assert found_keys("!?") == []


def test_stop_words_are_ignored_beside_meaningful_words() -> None:
    assert found_keys("how can i use the pull tool") == ["git__createPullRequest"]


def test_results_include_tools_for_each_step_of_a_request() -> None:
    stored = building.catalog_of(
        [
            building.tool("files__read", description="Read a text file."),
            building.tool("files__read_lines", description="Read lines of a text file."),
            building.tool("files__read_many", description="Read several text files."),
            building.tool("files__read_table", description="Read a table from a text file."),
            building.tool("mail__list", description="List the messages."),
        ]
    )
    request = "read the text file, then tell my boss by mail"
    assert "mail__list" in [hit.tool for hit in engine.search(stored, stored.tools, request, 3)]


def test_equal_scores_are_in_key_order_and_limited() -> None:
    twins = building.catalog_of(
        [building.tool("b", description="same"), building.tool("a", description="same")]
    )
    assert [hit.tool for hit in engine.search(twins, twins.tools, "same", 10)] == ["a", "b"]
    assert len(engine.search(twins, twins.tools, "same", 1)) == 1


def test_a_hit_names_the_words_of_the_query_that_it_matches() -> None:
    (hit,) = engine.search(STORED, ["files__read"], "reading files quickly", 10)
    assert hit.matched == ("reading", "files")
    assert hit.score > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git__list_issues", ["git", "list", "issues"]),
        ("createPullRequest", ["create", "pull", "request"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("部署 status", ["部署", "status"]),
        ("查询天气ticket", ["查询", "询天", "天气", "ticket"]),
        ("東京", ["東京"]),
        ("Café Übersicht Øl", ["cafe", "ubersicht", "ol"]),
        ("ｆｕｌｌ　width", ["full", "width"]),
        ("поиск", ["поиск"]),
    ],
)
def test_names_are_split_into_words(text: str, words: list[str]) -> None:
    assert words_.words_of(text) == words


@pytest.mark.parametrize(
    ("word", "related_word"),
    [
        ("issues", "issue"),
        ("listing", "list"),
        ("queries", "query"),
        ("created", "create"),
        ("passes", "pass"),
        ("translation", "translate"),
        ("calculator", "calculating"),
        ("stopped", "stop"),
    ],
)
def test_words_with_common_endings_have_the_same_stem(word: str, related_word: str) -> None:
    assert words_.stem(word) == words_.stem(related_word)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Save it to /srv/notes/whales.md.", ["save", "whales", "markdown", "file"]),
        (r"plot C:\docs\sales.xlsx, then sum", ["plot", "sales", "excel", "file", "sum"]),
        ("Read ~/paper.pdf", ["read", "paper", "pdf", "file"]),
        ("See https://www.apple.com/iphone-16/?a=b#c", ["url", "apple"]),
        ("copy and/or move", ["copy", "move"]),
        ("mail ada@example.md", ["mail", "ada", "example", "md"]),
        ("Next.js", ["js"]),
    ],
)
def test_paths_are_reduced_to_name_and_type_and_urls_to_their_host(text: str, words: list[str]) -> None:
    assert list(queries.parse(text).words.values()) == words


def test_a_request_of_many_words_also_finds_less_similar_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = building.catalog_of(
        [building.tool("a", description="Apple."), building.tool("b", description="Pear.")]
    )
    size = vectors.table().rows.shape[1]
    similarities = {"apple": 0.2, "zorblax": 1.0, "quux": 1.0, "foo": 1.0, "bar": 1.0}
    rows = [[share, (1 - share**2) ** 0.5, *[0.0] * (size - 2)] for share in similarities.values()]
    table = vectors.Table(
        numbers={word: number for number, word in enumerate(similarities)},
        rows=np.array(rows),
        scales=np.ones(len(rows)),
    )
    monkeypatch.setattr(vectors, "table", lambda: table)

    for query, keys in (("zorblax", []), ("zorblax quux foo bar", ["a"])):
        assert [hit.tool for hit in engine.search(stored, stored.tools, query, 10)] == keys


def test_a_product_of_vectors_does_not_depend_on_the_others_that_are_multiplied() -> None:
    table = vectors.table()
    rows = np.array([table.of({word: 1.0}) for word in ("send", "apple", "letter") * 50])
    mail = table.of({"mail": 1.0, "message": 1.0})

    assert rows @ mail == pytest.approx(rows.astype(np.float64) @ mail, abs=0)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-3)


def test_a_tool_is_found_by_words_of_similar_meaning() -> None:
    stored = building.catalog_of(
        [
            building.tool("images__make", description="Create a picture."),
            building.tool("money__convert", description="Convert a currency."),
        ]
    )
    hits = engine.search(stored, stored.tools, "photos", 5)
    assert [(hit.tool, hit.matched) for hit in hits] == [("images__make", ())]


def test_each_step_of_a_request_finds_its_tool() -> None:
    request = (
        "First list the issues of the repository, then open a pull request, and write the text to a path."
    )
    assert {"git__list_issues", "git__createPullRequest", "files__write"} == set(found_keys(request, limit=3))


def test_a_tool_is_found_by_its_parameters() -> None:
    input_schema = '{"properties": {"iban": {"description": "Account of the recipient."}}, "type": "object"}'
    stored = building.catalog_of(
        [building.tool("bank__send", input_schema=input_schema), building.tool("bank__show")]
    )
    assert [hit.tool for hit in engine.search(stored, stored.tools, "iban of the recipient", 5)] == [
        "bank__send"
    ]


@pytest.mark.parametrize("query", ["天气", "明天的天气", "météo", "METEO"])
def test_chinese_and_accented_words_find_tools(query: str) -> None:
    stored = building.catalog_of(
        [
            building.tool("a", description="查询城市天气。"),
            building.tool("b", description="La météo de demain."),
            building.tool("c", description="查询火车票。"),
        ]
    )
    assert engine.search(stored, stored.tools, query, 5)[0].tool == ("b" if "m" in query.lower() else "a")


def test_better_matches_that_the_agent_may_not_have_are_not_counted() -> None:
    better = [building.tool(f"text__path{number}", description="Text path.") for number in range(100)]
    stored = building.catalog_of([*STORED.tools.values(), *better])
    allowed = ["files__read", "files__write"]
    assert {hit.tool for hit in engine.search(stored, allowed, "text path", 2)} == set(allowed)


def test_a_very_long_query_is_truncated_and_searched() -> None:
    assert found_keys("pull request " + "lorem ipsum dolor " * 20_000)[0] == "git__createPullRequest"


def test_searching_an_empty_catalog_finds_nothing() -> None:
    empty = building.catalog_of()
    assert engine.search(empty, [], "anything", 10) == ()


def test_tools_that_the_agent_may_not_have_do_not_affect_its_results() -> None:
    denied = [
        building.tool(
            f"files__secret{number}", description="Read, write, issue: the same rare zymurgy words."
        )
        for number in range(60)
    ]
    stored = building.catalog_of(
        [*STORED.tools.values(), *denied],
        toolkits=[
            building.toolkit("ship", ["ci__status", *(tool.key for tool in denied)], title="Deployment")
        ],
    )
    for query in ("read text from a path", "list issues, then write text", "zymurgy of a request", "status"):
        expected = engine.search(STORED, STORED.tools, query, 10)
        assert engine.search(stored, STORED.tools, query, 10) == expected
        assert engine.search(stored, stored.tools, query, 10) != expected
