"""What does a toolkit in code say? (semantics: Policy, Directives)

The rule, before the code. A toolkit that a plugin owns speaks through a :class:`Voice`, asked at the question:

1. It is asked only while its plugin is active and has not failed, and a member is active. Otherwise, and where this
   process does not run the plugin, the toolkit says what its row says.
2. It says the same for the same active members (and message), so a section is asked for once and then kept with the
   catalog, like any other.
3. Its focus is cut to active tools, like any other.
4. It never raises. What runs foreign code behind it answers None for what went wrong, and tells the log; the question
   goes on without that section or that focus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol


class Focus(NamedTuple):
    """What the code wants the first step to be about; ``because`` says in a few words what asked for it."""

    tools: tuple[str, ...]
    tool_choice: Literal["auto", "required"] = "auto"
    because: str = ""


class Voice(Protocol):
    """Code that speaks for one toolkit; ``active_tools`` are its active members, in the members' order."""

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        """Give the toolkit's section; None: it has none."""
        ...

    def focus(self, active_tools: tuple[str, ...], message: str) -> Focus | None:
        """Give what the message should focus on; None: it says nothing of that."""
        ...


# By plugin and toolkit, so that no plugin speaks for a toolkit that is not its own.
Voices = Mapping[tuple[str, str], Voice]
