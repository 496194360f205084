"""The scripted model of the fakes: the user's text says what it does in each step of a turn.

``call NAME {…}`` calls a tool if it is offered, ``insist NAME {…}`` also if it is not, as models do that remember one.
`` + `` joins calls of a step, and `` then `` steps. Anything else is answered with text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

# What a program says in the user's turn without being the user.
_NOTICE = re.compile(r"<system-notice>\n(.*?)\n</system-notice>", re.DOTALL)


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]


def calls(texts: Iterable[str], step: int, offered: Collection[str]) -> list[Call]:
    """Return the calls of a step, from 0, of the turn in which the user said these texts."""
    script = next((text for text in texts if text.startswith(("call ", "insist "))), "")
    verb, _, told = script.partition(" ")
    steps = told.split(" then ") if told else []
    wanted = [part.strip().partition(" ") for part in steps[step].split(" + ")] if step < len(steps) else []
    return [
        Call(name, json.loads(arguments or "{}"))
        for name, _, arguments in wanted
        if verb == "insist" or name in offered
    ]


def notices(text: str) -> list[str]:
    """Return what a text of the user's turn says that is not the user's own."""
    return _NOTICE.findall(text)
