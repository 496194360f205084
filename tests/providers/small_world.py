"""A small configuration, and conversations in it: what the state machine changes."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers import soak
from toolbelt.core import belts
from toolbelt.core.scenarios import CoreWorld
from toolbelt.formats.appending import lines

TOOLS = [f"p__{letter}" for letter in "abcdef"]
TOOLKITS = ["sales", "desk", "post"]
OTHER = "eve"
CONFIG = {"sales": True, "desk": True}
# What the models of one form are called; a conversation moves between those of a form.
MODELS: dict[str, list[tuple[str, lines.Platform]]] = {
    "anthropic": [
        ("claude-opus-5-5", "api"),
        ("claude-haiku-5-5", "api"),
        ("claude-opus-5-5", "bedrock"),
        ("claude-haiku-4-5", "api"),
    ],
    "openai_responses": [("gpt-5.6", "api"), ("gpt-5.4", "api")],
    "openai_chat": [("gpt-5.6", "api"), ("qwen3-coder", "api"), ("gemma-3", "api")],
    "gemini": [("gemini-3.5-flash", "api")],
}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _toolkit(key: str, members: Sequence[str], choice: str) -> dict[str, Any]:
    trigger = {"name": "focus", "any": [f"about {key}"], "focus": [members[0]], "tool_choice": choice}
    return {
        "key": key,
        "description": f"About {key}",
        "members": list(members),
        "policy": f"{key} policy: {{active_tools}}.",
        "policy_when_off": f"{key} is off." if key == "desk" else "",
        "triggers": [trigger],
    }


BELT: dict[str, Any] = {
    "plugins": [{"name": "p", "namespace": "p", "trusted": True, "in_code": True}],
    "tools": [
        {"key": key, "plugin": "p", "description": f"Does {key}.", "input_schema": schema()} for key in TOOLS
    ],
    "toolkits": [
        _toolkit("sales", TOOLS[:2], "required"),
        _toolkit("desk", [*TOOLS[2:4], TOOLS[0]], "auto"),
        _toolkit("post", TOOLS[4:], "auto"),
    ],
    "agents": [
        {"key": key, "tools_config": CONFIG, "allowed_toolkits": ["post", "desk"]}
        for key in (soak.AGENT, OTHER)
    ],
}


@dataclasses.dataclass
class Talk:
    """A conversation of a program: its own messages and Toolbelt's state, stored together.

    place: The model, and where it runs. text: What the user wrote last. run: The run that answers it. step: The last
    request. heads: The digest of each line's prefix. sent: What each line was sent last, with the answer. known: What
    each line's model was told of, ``tool p__a``, ``toolkit desk``, with how many purges there were before. compacted:
    The provider compacted it since the last request. answered: How many requests were answered.
    """

    session: str
    place: tuple[str, lines.Platform]
    messages: list[Any] = dataclasses.field(default_factory=list)
    state: Mapping[str, Any] | None = None
    text: str = ""
    run: Any = None
    kept: Any = None
    heads: dict[str, str] = dataclasses.field(default_factory=dict)
    sent: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    known: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    compacted: bool = False
    answered: int = 0


class World(soak.World):
    """A configuration of which tools and texts can be purged."""

    def __init__(self, belt: Mapping[str, Any]) -> None:
        super().__init__(random.Random(0), belt)  # noqa: S311 (unused: the machine draws everything)
        self.core: _Core = _Core()
        self.core.load(copy.deepcopy(dict(belt)), lenient=False)


class _Core(CoreWorld):
    """``purges`` is what was purged, the first first: ``tool p__a``, ``toolkit desk``."""

    def __init__(self) -> None:
        super().__init__()
        self.purges: list[str] = []

    def _read(self, lenient: bool) -> belts.Belt:
        belt = super()._read(lenient)
        numbers = {name: number for number, name in enumerate(self.purges, 1)}
        return dataclasses.replace(
            belt, catalog=dataclasses.replace(belt.catalog, purges=numbers, derived={})
        )
