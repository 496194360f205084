"""Do the programs run that the documentation shows? Gives them to the parts, with this server's address in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kit

PAGE = Path(__file__).resolve().parent.parent / "docs/how-to/use-with-frameworks.md"


def program(heading: str, **known: Any) -> dict[str, Any]:
    """Run the first program under a heading, with the names that it calls the reader's; give what it defines."""
    exec(compile(_code(heading), heading, "exec"), known)  # noqa: S102 (our own page)
    return known


def recipe(heading: str, **known: Any) -> dict[str, Any]:
    """Run a recipe for MCP, and before it what all of them share."""
    return program(heading, **program("Other frameworks, over MCP", **known))


def module(heading: str) -> str:
    """Return the module of JavaScript under a heading."""
    return _code(heading, "js")


def _code(heading: str, language: str = "py") -> str:
    page = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^#+ ", page.partition(f" {heading}\n")[2], flags=re.MULTILINE)[0]
    code = section.partition(f"```{language}\n")[2].partition("```")[0]
    assert code, f"no program is shown under {heading}"
    code = code.replace("https://toolbelt.example", kit.ADDRESS)
    return re.sub(r"\bassistant(?=['\"/`])", kit.AGENT, code)
