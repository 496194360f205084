"""Tests that, if configured, the search learns the words of searches that led to a successful call."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt import models, testing
from toolbelt.control.config import belts, installation
from toolbelt.core.search import learned
from toolbelt.runtime import calls, secrets
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.records import learning
from toolbelt.store import clock, learned_words

pytestmark = pytest.mark.django_db

BELT: dict[str, Any] = {
    "tools": [
        {"key": "fetch", "description": "Fetch an entity."},
        {"key": "fetch_all", "description": "Fetch every entity."},
        {"key": "other", "description": "Something else."},
    ],
    "toolkits": [{"key": "crm", "members": ["fetch", "fetch_all"]}, {"key": "rest", "members": ["other"]}],
    "agents": [
        {"key": "ada", "tools_config": {"crm": True}, "allowed_toolkits": ["rest"]},
        {"key": "bob", "tools_config": {"crm": True}, "allowed_toolkits": ["rest"]},
        {"key": "eve", "tools_config": {"crm": True, "fetch_all": False}, "allowed_toolkits": ["rest"]},
    ],
}


@pytest.fixture(autouse=True)
def learns(db: None, settings: Any) -> Iterator[None]:
    """Enable learning, for agents whose own programs run the tools."""
    settings.TOOLBELT_LEARN_FROM_USE = True
    learning.forget()
    belts.import_(testing.OPERATOR, BELT)
    yield
    learning.forget()


def search(agent: str, query: str, session: str = "s") -> list[dict[str, Any]]:
    answer = calls.run(agent, "search_tools", {"query": query}, session)
    assert isinstance(answer, calls.Result), answer
    return list(answer.content["results"])


def found_tools(agent: str, query: str) -> list[str]:
    return [result["tool"] for result in search(agent, query, "another")]


def use(agent: str, tool: str, session: str = "s", outcome: admissions.Outcome = "ok") -> None:
    admitted = admissions.admit(Call(key=RequestKey(agent, session), tool=tool, arguments={}))
    assert isinstance(admitted, admissions.Admission), admitted
    admissions.report(agent, admitted.call_id, outcome)


def stored() -> dict[tuple[str, str], set[str]]:
    learning.forget()
    rows = models.LearnedWords.objects.values_list("agent", "tool", "words")
    return {(agent, tool): set(words) for agent, tool, words in rows}


def test_the_words_of_a_search_are_stored_for_the_tool_that_was_called() -> None:
    search("ada", "fetch the zorblax prospects, please")
    use("ada", "fetch_all")

    assert stored() == {("ada", "fetch_all"): {"fetch", "zorblax", "prospect"}}


def test_learned_words_raise_a_tool_s_rank_for_other_agents() -> None:
    assert found_tools("bob", "fetch zorblax")[0] == "fetch"
    search("ada", "fetch zorblax")
    use("ada", "fetch_all")
    learning.forget()

    assert found_tools("bob", "fetch zorblax")[0] == "fetch_all"
    learning.forget()
    assert search("bob", "zorblax")[0]["matched"] == "similar meaning"


def test_learned_words_do_not_reveal_a_denied_tool() -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all")
    learning.forget()

    assert found_tools("eve", "fetch zorblax") == ["fetch"]
    assert found_tools("eve", "zorblax") == []


@pytest.mark.parametrize("outcome", ["tool-failed", "cancelled"])
def test_a_failed_or_cancelled_call_teaches_nothing(outcome: admissions.Outcome) -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all", outcome=outcome)

    assert stored() == {}


def test_a_call_without_a_recent_search_of_its_session_teaches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all", session="another")
    use("bob", "fetch_all")
    monkeypatch.setattr(learning, "SECONDS", -1)
    use("ada", "fetch_all")

    assert stored() == {}


def test_repeated_calls_after_one_search_count_once() -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all")
    use("ada", "fetch_all")

    assert models.LearnedWords.objects.get().words["zorblax"] == 1


def test_numbers_long_words_and_known_secrets_are_not_learned() -> None:
    secrets.mask_always("hunter-zorblax")
    search("ada", f"fetch invoice 4711 x7 hunter-zorblax {'a' * 40}")
    use("ada", "fetch_all")

    assert stored() == {("ada", "fetch_all"): {"fetch", "invoic"}}


def test_a_search_for_a_tool_s_name_teaches_nothing() -> None:
    search("ada", "fetch_all")
    use("ada", "fetch_all")

    assert stored() == {}


def test_nothing_is_learned_or_used_unless_configured(settings: Any) -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all")
    learning.forget()
    settings.TOOLBELT_LEARN_FROM_USE = False

    search("bob", "fetch zorblax")
    use("bob", "fetch_all")
    assert found_tools("bob", "fetch zorblax")[0] == "fetch"
    assert set(stored()) == {("ada", "fetch_all")}


def test_searches_are_remembered_for_a_limited_number_of_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MAX_SESSIONS", 1)
    search("ada", "fetch zorblax")
    search("ada", "fetch quux", "later")
    use("ada", "fetch_all")
    use("ada", "fetch_all", "later")

    assert stored() == {("ada", "fetch_all"): {"fetch", "quux"}}


def test_simultaneous_searches_read_the_learned_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read(known: learned_words.Rows) -> learned_words.Rows:
        reads.append(1)
        time.sleep(0.05)
        return {}

    monkeypatch.setattr(learned_words, "read", read)
    with futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: learning.words(), range(4)))

    assert len(reads) == 1
    assert len(set(answers)) == 1


def test_later_searches_read_only_changed_words(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    lessons = [learned_words.Lesson(tool, "ada", ("zorblax",)) for tool in ("fetch", "other")]
    learned_words.add_all(lessons)
    assert places(learning.words(), "zorblax") == {"fetch", "other"}
    monkeypatch.setattr(learning, "REFRESH_SECONDS", 0)

    with django_assert_num_queries(1):
        learning.words()
    learned_words.add_all([learned_words.Lesson("fetch_all", "bob", ("zorblax", "quux"))])
    learned_words.erase(tool="other")
    with CaptureQueriesContext(connection) as queries:
        words = learning.words()

    assert places(words, "zorblax") == {"fetch", "fetch_all"}
    assert places(words, "quux") == {"fetch_all"}
    assert len(queries) == 2


def test_learned_words_lose_weight_over_time_in_a_running_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = clock.now()
    learned_words.add_all([learned_words.Lesson("fetch", "ada", ("zorblax",))])
    learning.words()
    monkeypatch.setattr(learning, "REFRESH_SECONDS", 0)
    monkeypatch.setattr(learning, "_WEIGH_SECONDS", 0)

    with clock.stopped(now + 5 * learned_words.HALF_LIFE):
        assert places(learning.words(), "zorblax") == set()


def places(words: learned.LearnedWords, stem: str) -> set[str]:
    keys = ["fetch", "fetch_all", "other"]
    matches = words.matches([stem], {key: place for place, key in enumerate(keys)}, bytes([1, 1, 1]))
    return {keys[place] for place in matches}


def test_operators_can_view_and_erase_learned_words(settings: Any) -> None:
    search("ada", "fetch zorblax")
    use("ada", "fetch_all")

    assert command() == "2 words of 1 tool. Learning from use is on.\n"
    installed = installation.status()
    assert (installed.learned.tools, installed.learned.agents, installed.is_learning) == (1, 1, True)
    assert command("--erase", "--tool", "fetch") == "Erased the learned words of 0 tools.\n"
    assert command("--erase", "--agent", "ada") == "Erased the learned words of 1 tool.\n"
    assert found_tools("bob", "fetch zorblax")[0] == "fetch"
    settings.TOOLBELT_LEARN_FROM_USE = False
    assert command() == "0 words of 0 tools. Learning from use is off.\n"
    with pytest.raises(CommandError, match="--erase"):
        command("--tool", "fetch")


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("learned_words", *arguments, stdout=out)
    return out.getvalue()
