"""What each line of models accepts in a request: whether a call can be forced, and where it reads a focus.

A row is found by the beginning of the model's name, with or without the prefix of a platform (``anthropic/``,
``us.anthropic.``, ``models/``). A row with ``*`` is for a whole family; any other is for one version, so that a newer
one is unknown. An unknown model is never forced to call a tool, and it reads a focus as the user's text, which
every provider accepts.

Sources, by the name that a row gives:

messages
    https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
checks
    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks
thinking
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Extended thinking with tool use"
new
    "What's new in Claude" of Opus 5.5, Sonnet 5.5 and Fable 5.1: "Forced tool use returns an error"
pydantic-ai
    pydantic-ai-slim 2.68, profiles/anthropic.py and providers/openai.py: live measurements in comments
openai
    https://developers.openai.com/api/docs/guides/function-calling, "Tool choice"
azure
    https://learn.microsoft.com/azure/ai-services/openai/how-to/function-calling, "Function descriptions"
gemini
    https://ai.google.dev/gemini-api/docs/function-calling, "Function calling modes"
mistral
    https://docs.mistral.ai/capabilities/function_calling, "tool_choice"
"""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass
from typing import Literal

# Whether a request may force a call: "yes", "no", or only "without-thinking".
Forcing = Literal["yes", "no", "without-thinking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a model accepts.

    forcing: Whether a request may force it to call a tool.
    allowed_tools: Whether OpenAI's ``allowed_tools`` restricts its choice to some of the tools.
    system_messages: Whether it follows a system message in the middle of a conversation.
    binds_thinking: Whether it refuses its own thinking after a change of what stood before it.
    reads_into_results: Whether it takes a system message right after a tool's result for a part of that.
    may_choose_added: Whether ``allowed_tools`` may name a tool that was added in the conversation.
    max_description: The most characters of a tool's description, and the platform that has this limit.
    """

    name: str
    forcing: Forcing = "no"
    allowed_tools: bool = False
    system_messages: bool = False
    binds_thinking: bool = False
    reads_into_results: bool = False
    may_choose_added: bool = True
    max_description: int | None = None
    platform: str = ""

    def can_be_forced(self, is_thinking: bool | None = None) -> bool:
        """Return whether a call can be forced. ``is_thinking`` is None if it is unknown whether the model thinks."""
        return self.forcing == "yes" or (self.forcing == "without-thinking" and is_thinking is False)


UNKNOWN = Profile(name="unknown")
# Accepts system messages in the conversation (messages), and refuses a forced call (new, pydantic-ai).
_CLAUDE_UNFORCED = Profile(name="claude-unforced", system_messages=True)
# Checks the prefix, too (checks).
_CLAUDE_BOUND = dataclasses.replace(_CLAUDE_UNFORCED, name="claude-bound", binds_thinking=True)
# Accepts a forced call, and checks the prefix (checks); reads what follows a result into it (pydantic-ai).
_CLAUDE_HAIKU = Profile(
    name="claude-haiku", forcing="yes", system_messages=True, binds_thinking=True, reads_into_results=True
)
# Accepts both (messages; pydantic-ai).
_CLAUDE = Profile(name="claude", forcing="yes", system_messages=True)
# Refuses or ignores system messages in the conversation (messages, pydantic-ai); a forced call while it thinks is
# refused (thinking).
_CLAUDE_OLD = Profile(name="claude-old", forcing="without-thinking")
# Every first-party model accepts a forced call and ``allowed_tools`` (openai, pydantic-ai).
_OPENAI = Profile(name="openai", forcing="yes", allowed_tools=True, system_messages=True)
# Before GPT-5.6, a choice of tools that were added later is refused (pydantic-ai).
_OPENAI_OLD = dataclasses.replace(_OPENAI, name="openai-old", may_choose_added=False)
# The choice "any" (mistral).
_MISTRAL = Profile(name="mistral", forcing="yes")
# The mode ANY (gemini).
_GEMINI = Profile(name="gemini", forcing="yes")

MODELS: dict[str, Profile] = {
    "claude-fable-5": _CLAUDE_UNFORCED,
    "claude-fable-5-1": _CLAUDE_BOUND,
    "claude-fable-5-2": _CLAUDE_BOUND,
    "claude-mythos-5": _CLAUDE_UNFORCED,
    "claude-mythos-5-1": _CLAUDE_UNFORCED,
    "claude-mythos-5-2": _CLAUDE_BOUND,
    "claude-opus-5-5": _CLAUDE_BOUND,
    "claude-sonnet-5-5": _CLAUDE_BOUND,
    "claude-haiku-5-5": _CLAUDE_HAIKU,
    "claude-opus-5": _CLAUDE,
    "claude-opus-4-8": _CLAUDE,
    "claude-sonnet-5": _CLAUDE_OLD,
    "claude-opus-4-*": _CLAUDE_OLD,
    "claude-sonnet-4-*": _CLAUDE_OLD,
    "claude-haiku-4-*": _CLAUDE_OLD,
    "claude-3-*": _CLAUDE_OLD,
    "gpt-4*": _OPENAI_OLD,
    "gpt-5": _OPENAI_OLD,
    "gpt-5-*": _OPENAI_OLD,
    "gpt-5.1*": _OPENAI_OLD,
    "gpt-5.2*": _OPENAI_OLD,
    "gpt-5.3*": _OPENAI_OLD,
    "gpt-5.4*": _OPENAI_OLD,
    "gpt-5.5*": _OPENAI_OLD,
    "gpt-5*": _OPENAI,
    "gpt-6*": _OPENAI,
    "o1*": _OPENAI_OLD,
    "o3*": _OPENAI_OLD,
    "o4*": _OPENAI_OLD,
    "gemini-*": _GEMINI,
    **dict.fromkeys(("codestral-*", "devstral-*", "magistral-*", "ministral-*", "mistral-*"), _MISTRAL),
}

# The provider behind a format, where there is only one, and all of its models accept the same. Without a model's name,
# its profile holds.
FORMATS: dict[str, Profile] = {"openai_responses": _OPENAI, "gemini": _GEMINI, "mistral": _MISTRAL}

# What may follow a version: a date, or what a platform appends, but no further number.
_END = r"(?![0-9])(?![-.][0-9]{1,3}(?![0-9]))"


def _pattern(row: str) -> re.Pattern[str]:
    end = "" if row.endswith("*") else _END
    return re.compile(rf"(?:^|.*[/:.]){re.escape(row.removesuffix('*'))}{end}")


_AZURE = re.compile(r"azure[/:]")
# The longest name first.
_PATTERNS = [(_pattern(row), MODELS[row]) for row in sorted(MODELS, key=len, reverse=True)]


@functools.lru_cache(1000)
def of(model: str, form: str = "") -> Profile:
    """Return the profile of a model, by its name; without a name, that of the format's own provider, if it has one."""
    name = model.strip().casefold()
    if not name:
        return FORMATS.get(form, UNKNOWN)
    if _AZURE.match(name):
        # What a deployment is called there says nothing of its model.
        known = of(name[len("azure/") :], form)
        return dataclasses.replace(known, max_description=1024, platform="Azure OpenAI")
    found = next((profile for pattern, profile in _PATTERNS if pattern.match(name)), UNKNOWN)
    # Mistral's word for a forced call is not OpenAI's.
    return UNKNOWN if found is _MISTRAL and form in ("openai_chat", "openai_responses") else found
