"""Tests that the page's programs govern five functions, in process and over HTTP, while a switch is flipped."""

from __future__ import annotations

import functools
import json
import sys
import types
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
import pytest
import yaml

from tests.adapters import served
from tests.docs import pages
from toolbelt import models, testing
from toolbelt.adapters.connection import http
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import approvals, decisions
from toolbelt.runtime import connection as in_process

PAGE = pages.ROOT / "docs/how-to/bring-the-tools-you-have.md"
FILES = {piece.file: piece.text for piece in pages.pieces(PAGE) if isinstance(piece, pages.Block)}
DIFFS = dict(zip(("openai", "anthropic"), pages.blocks(PAGE, "diff"), strict=True))
NAMES = {"find_order", "cancel_order", "refund", "send_note", "opening_hours"}
# About ten lines, as the page says.
MAX_ADDED = 12
REFUND = ("refund", {"order": 7, "reason": "broken"})

# The model's reply at a step: an answer or a tool call. A function is called at that step to return either.
Reply = str | tuple[str, dict[str, Any]] | Callable[[], Any]


class Model:
    """A model provider that replies according to a script and records the requests."""

    def __init__(self, *script: Reply) -> None:
        self.script, self.bodies = list(script), []  # type: tuple[list[Any], list[Any]]

    def client(self, client: Any) -> Any:
        """Return a client of this HTTP package, httpx or httpx2, whose requests the model answers."""
        return client.Client(
            transport=client.MockTransport(lambda request: client.Response(200, json=self._reply(request)))
        )

    def _reply(self, request: Any) -> Any:
        self.bodies.append(json.loads(request.content))
        reply = self.script.pop(0)
        reply = reply() if callable(reply) else reply
        write = _message if request.url.path.endswith("/messages") else _completion
        return write(reply, len(self.bodies))

    @property
    def offered(self) -> list[set[str]]:
        """Return the names of the tools in each request."""
        return [
            {tool.get("function", tool)["name"] for tool in body.get("tools", ())} for body in self.bodies
        ]

    @property
    def results(self) -> list[str]:
        """Return the tool results in the last request."""
        messages: list[Any] = self.bodies[-1]["messages"]
        blocks = [
            block
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [message["content"] for message in messages if message["role"] == "tool"] + [
            block["content"] for block in blocks if block["type"] == "tool_result"
        ]


def _completion(reply: Any, number: int) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        function = {"name": reply[0], "arguments": json.dumps(reply[1])}
        message["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def _message(reply: Any, number: int) -> Any:
    block: dict[str, Any] = {"type": "text", "text": reply}
    if not isinstance(reply, str):
        block = {"type": "tool_use", "id": f"c{number}", "name": reply[0], "input": reply[1]}
    about = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return {**about, "content": [block], "usage": {"input_tokens": 1, "output_tokens": 1}}


def programs(sdk: str) -> tuple[str, str]:
    """Return the program before and after the change that the page shows."""
    lines = DIFFS[sdk].splitlines()
    before = [line[1:] for line in lines if not line.startswith("+")]
    after = [line[1:] for line in lines if not line.startswith("-")]
    return "\n".join(before), "\n".join(after)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the module of the page."""
    module = types.ModuleType("shop")
    exec(compile(FILES["shop.py"], "shop.py", "exec"), vars(module))  # noqa: S102 (our own page)
    monkeypatch.setitem(sys.modules, "shop", module)
    return module


Start = Callable[[str, Model], Callable[[str, str], str]]


@pytest.fixture(params=["openai", "anthropic"])
def sdk(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(shop: Any, sdk: str, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a program of the page with a scripted model; return its ``answer``."""
    # Imported here, because both take seconds to import in every process that collects the tests.
    import anthropic
    import openai

    def start(code: str, model: Model) -> Callable[[str, str], str]:
        for module, name, package in ((openai, "OpenAI", httpx), (anthropic, "Anthropic", httpx2)):
            client = functools.partial(
                getattr(module, name), api_key="none", http_client=model.client(package)
            )
            monkeypatch.setattr(module, name, client)
        known: dict[str, Any] = {"MODEL": "scripted"}
        exec(compile(code, str(PAGE), "exec"), known)  # noqa: S102 (our own page)
        answer: Callable[[str, str], str] = known["answer"]
        return answer

    return start


@pytest.fixture(params=["in process", "over HTTP"])
def governed(
    request: pytest.FixtureRequest, db: None, sdk: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Model], Callable[[str, str], str]]:
    """Follow the page up to its third step, and return a function that starts the program."""
    belt = pages.blocks(PAGE, "yaml")[0]
    belts.import_(testing.OPERATOR, yaml.safe_load(belt))
    token = tokens.issue(testing.OPERATOR, agent="seller").text
    monkeypatch.setenv("TOOLBELT_TOKEN", token)

    def blocking(connection: http.Http) -> http.BlockingHttp:
        return http.BlockingHttp("http://testserver", "seller", token, transport=served.transport())

    monkeypatch.setattr(http.Http, "blocking", functools.lru_cache(blocking))
    if request.param == "in process":
        monkeypatch.setattr(http, "Http", lambda address, agent, token: in_process.Local(agent))
    return lambda model: start(programs(sdk)[1], model)


def approve() -> None:
    """Approve the declared tools, as an operator does."""
    waiting = approvals.review("shop").to_review
    assert {change.key for change in waiting} == NAMES
    decisions.approve(
        testing.OPERATOR, {change.key: change.version_hash for change in waiting}, plugin="shop"
    )


def test_the_original_program_runs(start: Start, sdk: str) -> None:
    model = Model(REFUND, "Done.")
    assert start(programs(sdk)[0], model)("Refund order 7.", "s1") == "Done."
    assert model.offered == [NAMES, NAMES]


def test_the_change_adds_about_ten_lines(sdk: str) -> None:
    added = [line for line in DIFFS[sdk].splitlines() if line.startswith("+")]
    assert len(added) <= MAX_ADDED, added


def test_the_model_gets_the_tools_once_they_are_approved(governed: Any) -> None:
    model = Model("I have no tools.", REFUND, "Done.")
    answer = governed(model)
    assert answer("Refund order 7.", "s1") == "I have no tools."
    approve()
    assert answer("Refund order 7.", "s1") == "Done."
    assert model.offered == [set(), NAMES, NAMES]
    assert model.results == ["Order 7 is refunded: broken."]
    [call] = models.CallRecord.objects.values_list("agent", "tool", "outcome", "session")
    assert call == ("seller", "refund", "ok", "s1")


def test_a_tool_switched_off_during_a_run_is_refused_and_no_longer_offered(governed: Any, shop: Any) -> None:
    def off_then_call() -> Any:
        switches.override(testing.OPERATOR.replace(confirm=True), "seller", "cancel_order", False)
        return ("cancel_order", {"order": 8})

    model = Model("Ready.", ("find_order", {"order": 8}), off_then_call, "I cannot.")
    answer = governed(model)
    answer("Hello.", "s1")
    approve()
    assert answer("Cancel order 8.", "s1") == "I cannot."
    order, refused = model.results
    assert json.loads(order) == {"order": 8, "status": "paid"}
    assert refused.startswith("tool-denied: ")
    assert shop.ORDERS[8] == "paid"
    assert model.offered[1:] == [NAMES, NAMES, NAMES - {"cancel_order"}]


def test_an_exception_is_returned_to_the_model_and_recorded(governed: Any) -> None:
    model = Model("Ready.", ("find_order", {"order": 9}), "There is none.")
    answer = governed(model)
    answer("Hello.", "s1")
    approve()
    assert answer("Find order 9.", "s1") == "There is none."
    assert model.results == ["tool-failed: 9"]
    assert models.CallRecord.objects.get().outcome == "tool-failed"


def test_decorated_functions_are_declared_and_can_be_called(governed: Any) -> None:
    code = PAGE.read_text(encoding="utf-8").partition("### Any other program")[2]
    known: dict[str, Any] = {}
    exec(compile(code.partition("```py\n")[2].partition("```")[0], str(PAGE), "exec"), known)  # noqa: S102 (our own page)
    run = known["toolbelt"].begin("Find order 7.", "s1")
    run.step("openai_chat")
    waiting = approvals.review("shop").to_review
    assert {change.key for change in waiting} == {"find_order", "opening_hours"}
    decisions.approve(
        testing.OPERATOR, {change.key: change.version_hash for change in waiting}, plugin="shop"
    )
    offered = run.step("openai_chat").parameters["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["find_order", "opening_hours"]
    assert run.call("find_order", {"order": 7}).content == {"order": 7, "status": "shipped"}
    assert run.call("find_order", {"order": "x"}).text.startswith("invalid-arguments")
