"""The programs of the documentation, which the parts run with this server's address."""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_process
import kit
import scenario

PAGES = Path(__file__).resolve().parent.parent / "docs/how-to"
PAGE, OWN_TOOLS = PAGES / "use-with-frameworks.md", PAGES / "bring-the-tools-you-have.md"


def program(heading: str, page: Path = PAGE, **known: Any) -> dict[str, Any]:
    """Run the first program under a heading, and return what it defines.

    ``known`` are the names that the program expects its reader to define.
    """
    exec(compile(_code(heading, page=page), heading, "exec"), known)  # noqa: S102 (our own page)
    return known


def check_own_tools(heading: str, model: Callable[[list[Any]], Any]) -> None:
    """Run the program of the page on a program's own tools, as documented and with Toolbelt in the same process.

    ``model`` returns a model that replies by a script.
    """
    _check_own_tools(heading, model, _code(heading, page=OWN_TOOLS))
    # As the page says, only the connection differs.
    code = _code(heading, page=OWN_TOOLS)
    line = next(line for line in code.splitlines() if line.startswith("connection = "))
    replacement = 'connection = in_process.connection("seller")'
    _check_own_tools(heading, model, code.replace(line, replacement), in_process=in_process)


def _check_own_tools(heading: str, model: Callable[[list[Any]], Any], code: str, **known: Any) -> None:
    shop = types.ModuleType("shop")
    text = OWN_TOOLS.read_text(encoding="utf-8").partition("<!-- the file shop.py -->")[2]
    exec(text.partition("```py\n")[2].partition("```")[0], vars(shop))  # noqa: S102 (our own page)
    sys.modules["shop"] = shop
    os.environ["TOOLBELT_TOKEN"] = kit.manage("token", "issue", "--agent", "seller")
    refund = scenario.Call("refund", {"order": 7, "reason": "broken"})
    cancel = scenario.Call("cancel_order", {"order": 8})

    def off_then_call() -> scenario.Reply:
        kit.override("cancel_order", False, "seller")
        return cancel

    script = ["I have no tools.", refund, off_then_call, "Refunded."]
    known["model"] = model(script)
    exec(compile(code, heading, "exec"), known)  # noqa: S102 (our own page)
    answer = known["answer"]
    before = kit.newest(agent="seller")
    assert answer("Hello.", kit.session()) == "I have no tools."
    kit.approve("shop")
    kit.override("cancel_order", True, "seller")
    assert answer("Refund order 7, cancel order 8.", kit.session()) == "Refunded."
    refused, completed = kit.recorded(2, after=before, agent="seller")
    assert (completed["tool"], completed["outcome"]) == ("refund", "ok")
    # In a conversation, the model knew the tool.
    assert refused["tool"] == "cancel_order"
    assert refused["outcome"] in ("tool-denied", "tool-withdrawn")
    assert shop.ORDERS[8] == "paid"


def recipe(heading: str, **known: Any) -> dict[str, Any]:
    """Run a recipe for MCP, after the program that all of them share."""
    return program(heading, **program("Other frameworks, over MCP", **known))


def module(heading: str) -> str:
    """Return the JavaScript module under a heading."""
    return _code(heading, "js")


def _code(heading: str, language: str = "py", page: Path = PAGE) -> str:
    text = page.read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text.partition(f" {heading}\n")[2], flags=re.MULTILINE)[0]
    code = section.partition(f"```{language}\n")[2].partition("```")[0]
    assert code, f"no program is shown under {heading}"
    code = code.replace("https://toolbelt.example", kit.ADDRESS).replace("http://127.0.0.1:8000", kit.ADDRESS)
    return re.sub(r"\bassistant(?=['\"/`])", kit.AGENT, code)
