"""The checks that every recipe for a framework over MCP must pass.

The framework's own client of OpenAI's API talks to a scripted model, and what it sends is read from its requests. A
part derives from :class:`PythonChecks` or :class:`NodeChecks`, which run the recipe that the documents show.
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
DISPATCH = Call("call_tool", {"tool": "desk__add_note", "arguments": {"text": "Milk."}})
# Longer than any run takes.
SECONDS = 60


@dataclass
class Played:
    """A run: the requests that the model received, and the answer that the program printed."""

    asked: list[model.Asked]
    answer: str


class Script:
    """Replies in order; a reply that is a function is called when its turn comes."""

    def __init__(self, checks: Checks, replies: tuple[Any, ...]) -> None:
        self.asked: list[model.Asked] = []
        self._checks, self._left = checks, list(replies)

    def reply(self, asked: model.Asked) -> model.Reply:
        self.asked.append(asked)
        reply = scenario.next_of(self._left) if self._left else "The script has ended."
        return self._checks.written(reply, asked)


class Checks(abc.ABC):
    """Runs the recipe under ``heading``."""

    heading = ""
    # How often the framework lists the tools: for each "run", or for each "step" of it.
    lists_each = "run"
    # What the framework puts before the names of Toolbelt's tools.
    prefix = ""
    # Tools of the framework itself, which it offers beside Toolbelt's.
    own: frozenset[str] = frozenset()
    # Toolbelt's own tools, as far as the framework offers them.
    toolbelts = frozenset({SEARCH.name, DISPATCH.name})
    refusal = "There is no tool named 'desk__add' that you may call."

    @abc.abstractmethod
    def run(self, address: str, message: str) -> str:
        """Run the recipe, with the model at an address; return what its agent answers."""

    def tools(self, asked: model.Asked) -> set[str]:
        """Return the tools that a request offers to the model."""
        return {name.removeprefix(self.prefix) for name in asked.tools}

    def results(self, asked: model.Asked) -> list[str]:
        """Return the results of tools that a request contains."""
        return asked.answers

    def written(self, reply: Reply, asked: model.Asked) -> model.Reply:
        """Write a reply as the framework expects it from a model."""
        if isinstance(reply, str):
            return model.Reply(text=reply)
        return model.Reply(tool=f"{self.prefix}{reply.name}", arguments=reply.arguments)

    def play(self, *replies: Reply | Callable[[], Reply]) -> Played:
        """Run the recipe once, with a model that replies as the script says."""
        script = Script(self, replies)
        with model.Server(script) as server:
            answer = self.run(f"{server.address}/v1", "What is it?")
        return Played(script.asked, answer)

    def test_the_model_is_offered_exactly_what_the_agent_is_granted(self) -> None:
        played = self.play("Nothing.")
        assert self.tools(played.asked[0]) - self.own == granted() | self.toolbelts
        assert played.answer == "Nothing."

    def test_the_policy_is_in_the_system_prompt(self) -> None:
        played = self.play("Nothing.")
        assert "Never add in your head" in system(played.asked[0])

    def test_a_tool_runs_and_the_model_reads_its_result(self) -> None:
        before = kit.newest(agent=kit.AGENT, tool=ADD.name)
        played = self.play(ADD, "Five.")
        (result,) = self.results(played.asked[1])
        assert "sum:5" in scenario.squeezed(result)
        assert played.answer == "Five."
        (call,) = kit.recorded(1, after=before, agent=kit.AGENT, tool=ADD.name)
        assert call["outcome"] == "ok"

    def test_the_model_reads_why_a_tool_failed(self) -> None:
        played = self.play(Call("desk__fail", {"because": "lunch"}), "I give up.")
        assert "The desk is closed: lunch." in self.results(played.asked[1])[-1]
        assert played.answer == "I give up."

    def test_what_the_agent_may_load_is_found_and_called(self) -> None:
        played = self.play(SEARCH, DISPATCH, "Noted.")
        assert "desk__add_note" in self.results(played.asked[1])[-1]
        assert "Noted: Milk." in self.results(played.asked[2])[-1]
        assert all("desk__add_note" not in self.tools(asked) for asked in played.asked)

    def test_a_tool_that_is_switched_off_during_a_run_is_refused_in_words(self) -> None:
        def off_then_call() -> Reply:
            kit.switch("arithmetic", False)
            return ADD

        before = kit.newest(agent=kit.AGENT, tool=ADD.name)
        with kit.switched("arithmetic", True):
            played = self.play(ADD, off_then_call, "I cannot.")
            next_run = self.play("Nothing.")
        first, refused = self.results(played.asked[2])
        assert "sum:5" in scenario.squeezed(first)
        assert self.refusal in refused
        assert played.answer == "I cannot."
        assert len(kit.recorded(1, after=before, agent=kit.AGENT, tool=ADD.name, outcome="ok")) == 1
        before_flip, at_flip, after_flip = (ADD.name in self.tools(asked) for asked in played.asked[:3])
        assert (before_flip, at_flip, after_flip) == (True, True, self.lists_each == "run")
        assert ADD.name not in self.tools(next_run.asked[0])
        assert "You have no tool for sums" in system(next_run.asked[0])


class PythonChecks(Checks):
    """Runs a recipe in Python, in this process."""

    @abc.abstractmethod
    def answer(self, recipe: dict[str, Any], message: str) -> str:
        """Let the recipe's agent answer a message."""

    @abc.abstractmethod
    def model(self, address: str) -> Any:
        """Return the framework's client of OpenAI's API, for the API at an address."""

    def run(self, address: str, message: str) -> str:
        return self.answer(documented.recipe(self.heading, model=self.model(address)), message)


class NodeChecks(Checks):
    """Runs a recipe in JavaScript, beside the packages of the part; ``client`` is its model, with ADDRESS in it."""

    client = ""

    def run(self, address: str, message: str) -> str:
        where = Path(sys.prefix) / "node"
        (where / "recipe.mjs").write_text(documented.module(self.heading), encoding="utf-8")
        client = self.client.replace("ADDRESS", json.dumps(address))
        call = (
            f'const said = await answer(model, {json.dumps(message)});\nprocess.stdout.write("\\n" + said);'
        )
        program = f'import {{ answer }} from "./recipe.mjs";\n{client}\n{call}\nprocess.exit();\n'
        (where / "run.mjs").write_text(program, encoding="utf-8")
        # Some frameworks need a newer Node than yours; then it is one of the packages.
        path = os.pathsep.join([str(where / "node_modules/.bin"), os.environ["PATH"]])
        done = subprocess.run(
            ["node", "run.mjs"],
            cwd=where,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.rpartition("\n")[2]


def granted() -> set[str]:
    """Return the names of the tools that the agent is granted, according to the API, without Toolbelt's own."""
    surface = kit.operator("GET", f"agents/{kit.AGENT}/surface")
    return {tool["name"] for tool in surface["tools"]} - scenario.LOADERS


def system(asked: model.Asked) -> str:
    """Return the system prompt of a request."""
    messages = asked.body.get("messages") or asked.body.get("input") or ()
    found = [one["content"] for one in messages if one.get("role") in ("system", "developer")]
    found.append(asked.body.get("instructions") or "")
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in found)
