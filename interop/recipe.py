"""The checks that every recipe for a framework over MCP must pass.

The framework's own client of OpenAI's API sends its requests to a scripted model, which records them. A part derives a
class from :class:`PythonChecks` or :class:`NodeChecks`, which run the documented recipe.
"""

from __future__ import annotations

import abc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import documented
import kit
import model
import scenario
from scenario import ADD, Call, Reply

# With every argument, because smolagents requires them all.
SEARCH = Call("search_tools", {"query": "put a note", "limit": 5, "offset": 0})
# Longer than clients wait by default: 5 s in httpx, 10 s in Agno. Set 45 to check the others, which wait 30 s.
SLOW_SECONDS = int(os.environ.get("INTEROP_SLOW_SECONDS", "12"))
DISPATCH = Call("call_tool", {"tool": "desk__add_note", "arguments": {"text": "Milk."}})
# Longer than any run takes.
TIMEOUT = 60 + SLOW_SECONDS


@dataclass
class Run:
    """The requests that the model received in a run, and the answer that the program printed."""

    requests: list[model.ModelRequest]
    answer: str


class Script:
    """A model that replies in order. A reply that is a function is called when it is needed."""

    def __init__(self, checks: Checks, replies: tuple[Any, ...]) -> None:
        self.requests: list[model.ModelRequest] = []
        self._checks, self._left = checks, list(replies)

    def reply(self, request: model.ModelRequest) -> model.Reply:
        self.requests.append(request)
        reply = scenario.next_reply(self._left) if self._left else "The script has ended."
        return self._checks.format_reply(reply, request)


class Checks(abc.ABC):
    """The checks of the recipe under ``heading``."""

    heading = ""
    # When the framework lists the tools: once for each "run", or for each "step" of it.
    lists_each = "run"
    # What the framework puts before the names of Toolbelt's tools.
    prefix = ""
    # Tools that the framework itself adds.
    framework_tools: frozenset[str] = frozenset()
    # Toolbelt's own tools that the framework offers.
    toolbelt_tools = frozenset({SEARCH.name, DISPATCH.name})
    refusal = "There is no tool named 'desk__add' that you may call."

    @abc.abstractmethod
    def run(self, address: str, message: str) -> str:
        """Run the recipe with the model at an address, and return its agent's answer."""

    def tools(self, request: model.ModelRequest) -> set[str]:
        """Return the tools that a request offers to the model."""
        return {name.removeprefix(self.prefix) for name in request.tools}

    def results(self, request: model.ModelRequest) -> list[str]:
        """Return the results of tools that a request contains."""
        return request.answers

    def format_reply(self, reply: Reply, request: model.ModelRequest) -> model.Reply:
        """Return a reply in the form that the framework expects from a model."""
        if isinstance(reply, str):
            return model.Reply(text=reply)
        return model.Reply(tool=f"{self.prefix}{reply.name}", arguments=reply.arguments)

    def play(self, *replies: Reply | Callable[[], Reply]) -> Run:
        """Run the recipe once, with a model that replies as the script says."""
        script = Script(self, replies)
        with model.Server(script) as server:
            answer = self.run(f"{server.address}/v1", "What is it?")
        return Run(script.requests, answer)

    def test_the_model_is_offered_exactly_what_the_agent_is_granted(self) -> None:
        run = self.play("Nothing.")
        assert self.tools(run.requests[0]) - self.framework_tools == granted() | self.toolbelt_tools
        assert run.answer == "Nothing."

    def test_the_policy_is_in_the_system_prompt(self) -> None:
        run = self.play("Nothing.")
        assert "Never add in your head" in system(run.requests[0])

    def test_a_tool_runs_and_the_model_reads_its_result(self) -> None:
        before = kit.newest(agent=kit.AGENT, tool=ADD.name)
        run = self.play(ADD, "Five.")
        (result,) = self.results(run.requests[1])
        assert "sum:5" in scenario.normalized(result)
        assert run.answer == "Five."
        (call,) = kit.recorded(1, after=before, agent=kit.AGENT, tool=ADD.name)
        assert call["outcome"] == "ok"

    def test_the_model_reads_why_a_tool_failed(self) -> None:
        run = self.play(Call("desk__fail", {"because": "lunch"}), "I give up.")
        assert "The desk is closed: lunch." in self.results(run.requests[1])[-1]
        assert run.answer == "I give up."

    def test_a_slow_tool_gets_the_time_that_toolbelt_gives_it(self) -> None:
        run = self.play(Call("desk__wait", {"seconds": SLOW_SECONDS}), "At last.")
        assert f"Waited {SLOW_SECONDS} s." in self.results(run.requests[1])[-1]
        assert run.answer == "At last."

    def test_what_the_agent_may_load_is_found_and_called(self) -> None:
        run = self.play(SEARCH, DISPATCH, "Noted.")
        assert "desk__add_note" in self.results(run.requests[1])[-1]
        assert "Noted: Milk." in self.results(run.requests[2])[-1]
        assert all("desk__add_note" not in self.tools(request) for request in run.requests)

    def test_a_tool_that_is_switched_off_during_a_run_is_refused_in_words(self) -> None:
        def off_then_call() -> Reply:
            kit.switch("arithmetic", False)
            return ADD

        before = kit.newest(agent=kit.AGENT, tool=ADD.name)
        with kit.switched("arithmetic", True):
            run = self.play(ADD, off_then_call, "I cannot.")
            next_run = self.play("Nothing.")
        first, refused = self.results(run.requests[2])
        assert "sum:5" in scenario.normalized(first)
        assert self.refusal in refused
        assert run.answer == "I cannot."
        assert len(kit.recorded(1, after=before, agent=kit.AGENT, tool=ADD.name, outcome="ok")) == 1
        before_flip, at_flip, after_flip = (ADD.name in self.tools(request) for request in run.requests[:3])
        assert (before_flip, at_flip, after_flip) == (True, True, self.lists_each == "run")
        assert ADD.name not in self.tools(next_run.requests[0])
        assert "You have no tool for sums" in system(next_run.requests[0])


class PythonChecks(Checks):
    """The checks of a recipe in Python, which runs in this process."""

    @abc.abstractmethod
    def answer(self, recipe: dict[str, Any], message: str) -> str:
        """Return the answer of the recipe's agent to a message."""

    @abc.abstractmethod
    def model(self, address: str) -> Any:
        """Return the framework's client of OpenAI's API, for an address."""

    def run(self, address: str, message: str) -> str:
        return self.answer(documented.recipe(self.heading, model=self.model(address)), message)


class NodeChecks(Checks):
    """The checks of a recipe in JavaScript, which runs beside the part's packages.

    ``client`` is the code that creates the model; ADDRESS stands for the model's address.
    """

    client = ""

    def run(self, address: str, message: str) -> str:
        directory = Path(sys.prefix) / "node"
        (directory / "recipe.mjs").write_text(documented.module(self.heading), encoding="utf-8")
        client = self.client.replace("ADDRESS", json.dumps(address))
        call = (
            f'const text = await answer(model, {json.dumps(message)});\nprocess.stdout.write("\\n" + text);'
        )
        program = f'import {{ answer }} from "./recipe.mjs";\n{client}\n{call}\nprocess.exit();\n'
        (directory / "run.mjs").write_text(program, encoding="utf-8")
        # If a framework needs a newer Node than the installed one, Node is one of the part's packages.
        path = os.pathsep.join([str(directory / "node_modules/.bin"), os.environ["PATH"]])
        completed = subprocess.run(
            ["node", "run.mjs"],
            cwd=directory,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.rpartition("\n")[2]


def granted() -> set[str]:
    """Return the names of the agent's tools according to the API, without Toolbelt's own."""
    surface = kit.operator("GET", f"agents/{kit.AGENT}/surface")
    return {tool["name"] for tool in surface["tools"]} - scenario.LOADERS


def system(request: model.ModelRequest) -> str:
    """Return the system prompt of a request."""
    messages = request.body.get("messages") or request.body.get("input") or ()
    parts = [message["content"] for message in messages if message.get("role") in ("system", "developer")]
    parts.append(request.body.get("instructions") or "")
    return "\n".join(part if isinstance(part, str) else json.dumps(part) for part in parts)
