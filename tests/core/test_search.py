"""Search of tools: by their words, by what they mean, and among what the agent may have only."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import search
from toolbelt.core.search import vectors

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


def test_one_step_of_a_request_leaves_room_for_another() -> None:
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
    assert "mail__list" in [hit.tool for hit in search.search(stored, stored.tools, request, 3)]


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
        ("查询天气ticket", ["查询", "询天", "天气", "ticket"]),
        ("東京", ["東京"]),
        ("Café Übersicht Øl", ["cafe", "ubersicht", "ol"]),
        ("ｆｕｌｌ　width", ["full", "width"]),
        ("поиск", ["поиск"]),
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
        ("translation", "translate"),
        ("calculator", "calculating"),
        ("stopped", "stop"),
    ],
)
def test_common_endings_do_not_part_words(one: str, other: str) -> None:
    assert search.stem(one) == search.stem(other)


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
def test_of_a_file_its_name_and_kind_are_searched_and_of_an_address_its_host(
    text: str, words: list[str]
) -> None:
    assert list(search.parse(text).words.values()) == words


def test_a_short_request_finds_what_is_close_and_one_of_many_words_what_is_nearly_as_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = building.catalog_of(
        [building.tool("a", description="Apple."), building.tool("b", description="Pear.")]
    )
    size = vectors.table().size
    near = {"apple": 0.2, "zorblax": 1.0, "quux": 1.0, "foo": 1.0, "bar": 1.0}
    rows = {word: [share, (1 - share**2) ** 0.5, *[0.0] * (size - 2)] for word, share in near.items()}
    table = vectors.unpack(vectors.pack(rows))
    monkeypatch.setattr(vectors, "table", lambda: table)

    for query, keys in (("zorblax", []), ("zorblax quux foo bar", ["a"])):
        assert [hit.tool for hit in search.search(stored, stored.tools, query, 10)] == keys


def test_the_vector_of_a_text_and_those_of_its_parts_are_made_at_once() -> None:
    parts = [{"apple": 2.0, "send": 1.0}, {"apple": 1.0, "letter": 1.0}]
    whole, each = vectors.of_parts(parts)

    assert whole == pytest.approx(vectors.of({"apple": 3.0, "send": 1.0, "letter": 1.0}))
    assert each == [vectors.of(part) for part in parts]


def test_a_tool_is_found_by_words_that_mean_what_its_own_mean() -> None:
    stored = building.catalog_of(
        [
            building.tool("images__make", description="Create a picture."),
            building.tool("money__convert", description="Convert a currency."),
        ]
    )
    hits = search.search(stored, stored.tools, "photos", 5)
    assert [(hit.tool, hit.matched) for hit in hits] == [("images__make", ())]


def test_each_step_of_a_request_finds_its_tool() -> None:
    request = (
        "First list the issues of the repository, then open a pull request, and write the text to a path."
    )
    assert {"git__list_issues", "git__createPullRequest", "files__write"} == set(found(request, limit=3))


def test_a_tool_is_found_by_its_parameters() -> None:
    input_schema = '{"properties": {"iban": {"description": "Account of the recipient."}}, "type": "object"}'
    stored = building.catalog_of(
        [building.tool("bank__send", input_schema=input_schema), building.tool("bank__show")]
    )
    assert [hit.tool for hit in search.search(stored, stored.tools, "iban of the recipient", 5)] == [
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
    assert search.search(stored, stored.tools, query, 5)[0].tool == ("b" if "m" in query.lower() else "a")


def test_better_tools_that_the_agent_may_not_have_take_no_ones_place() -> None:
    better = [building.tool(f"text__path{number}", description="Text path.") for number in range(100)]
    stored = building.catalog_of([*STORED.tools.values(), *better])
    allowed = ["files__read", "files__write"]
    assert {hit.tool for hit in search.search(stored, allowed, "text path", 2)} == set(allowed)


def test_a_pasted_page_is_cut_and_searched() -> None:
    assert found("pull request " + "lorem ipsum dolor " * 20_000)[0] == "git__createPullRequest"


def test_an_empty_catalog_answers_nothing() -> None:
    empty = building.catalog_of()
    assert search.search(empty, [], "anything", 10) == ()


def test_tools_that_the_agent_may_not_have_change_nothing_for_it() -> None:
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
        expected = search.search(STORED, STORED.tools, query, 10)
        assert search.search(stored, STORED.tools, query, 10) == expected
        assert search.search(stored, stored.tools, query, 10) != expected
