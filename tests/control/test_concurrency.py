"""Do operators who write at the same moment lose anything?"""

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from tests.control.conftest import BELT
from toolbelt.control import actors, belts, entries, queries, switches
from toolbelt.core import errors

pytestmark = pytest.mark.django_db(transaction=True)
OPERATOR = actors.Actor(name="olive", via="screen")


def at_once(acts: list[Callable[[], object]]) -> list[BaseException | None]:
    """Run the acts in threads that begin together; what each raised."""
    start = threading.Barrier(len(acts))
    raised: list[BaseException | None] = [None] * len(acts)

    def run(number: int, act: Callable[[], object]) -> None:
        try:
            start.wait()
            act()
        except errors.ToolbeltError as error:
            raised[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_writers_of_different_keys_all_get_through() -> None:
    tools = [{"key": f"tool{n}", "description": "x", "annotations": {"readOnlyHint": True}} for n in range(8)]
    belts.import_(OPERATOR, {"tools": tools, "agents": [{"key": "ada"}]})

    raised = at_once(
        [lambda n=n: switches.override(OPERATOR, "ada", f"tool{n}", True, was=None) for n in range(8)]  # type: ignore[misc]
    )

    assert raised == [None] * 8
    assert entries.read("agent", "ada")["tools_config"] == {f"tool{n}": True for n in range(8)}
    assert queries.changes(action="override.set").total == 8


def test_of_two_writers_of_one_key_that_saw_the_same_one_is_told() -> None:
    belts.import_(OPERATOR, BELT)

    raised = at_once(
        [
            lambda: switches.flip(OPERATOR, "bob", "reading", False, was=True),
            lambda: switches.flip(OPERATOR, "bob", "reading", None, was=True),
        ]
    )

    assert sorted(type(error).__name__ for error in raised) == ["NoneType", "Stale"]
    assert queries.changes(agent="bob", key="reading").total == 1
