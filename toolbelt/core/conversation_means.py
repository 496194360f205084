"""What can be said in the middle of a conversation. Agents' programs import this, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What can be said in the middle of a conversation.

    add: How a tool is added: with its definition (``define``), by reference to one that was declared at the start
        (``refer``), or not at all: the model then calls it through call_tool (``dispatch``).
    remove: How it is withdrawn: the model no longer sees it (``withdraw``), the request may not call it (``restrict``),
        or in words (``say``). Whatever it sees, the call is refused.
    replace: Whether a definition can be replaced; if not, the change is said in words.
    """

    add: Literal["define", "refer", "dispatch"]
    remove: Literal["withdraw", "restrict", "say"]
    replace: bool = False
