"""What each model accepts, for the fakes: as the public documentation, or a cited live measurement, says.

This is not the table of `toolbelt.formats.profiles`, which these fakes check.

Sources, by their short name:
  MCS   https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
  PT    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
  PC    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks
  PAI   pydantic-ai-slim 2.68, profiles/anthropic.py and providers/openai.py: live measurements in comments
  OTS   https://developers.openai.com/api/docs/guides/tools-tool-search
  OPC   https://developers.openai.com/api/docs/guides/prompt-caching
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claude:
    """A line of Claude models.

    system: "native" (role system in messages), "ignored" (accepted, not followed) or "rejected".
    checks: Whether thinking blocks are bound to the prefix.
    always: Whether that is enforced on every account, not only on new ones.
    forced: Whether tool_choice any or tool is accepted.
    changes: Whether tool_addition and tool_removal are.
    """

    system: str
    checks: bool
    always: bool
    forced: bool
    changes: bool


CLAUDE = {
    # PC featureMetadata lists these as checking; PAI: 5.2 returns the 400 on an account made before 2026-08-31 too.
    "claude-fable-5-2": Claude("native", True, True, False, True),
    "claude-mythos-5-2": Claude("native", True, True, False, True),
    "claude-fable-5-1": Claude("native", True, False, False, True),
    "claude-mythos-5-1": Claude("native", False, False, False, True),  # PT: does not run the check
    "claude-opus-5-5": Claude("native", True, False, False, True),
    "claude-sonnet-5-5": Claude("native", True, False, False, True),
    "claude-haiku-5-5": Claude("native", True, False, True, True),  # PAI: accepts forcing
    "claude-opus-5": Claude("native", False, False, True, True),
    "claude-opus-4-8": Claude("native", False, False, True, True),
    "claude-sonnet-5": Claude(
        "ignored", False, False, True, False
    ),  # MCS: not available; PAI: 200, then ignored
    "claude-sonnet-4-6": Claude("rejected", False, False, True, False),
    "claude-haiku-4-5": Claude(
        "rejected", False, False, True, False
    ),  # PAI: "role 'system' is not supported on this model"
}


@dataclass(frozen=True)
class OpenAI:
    """A line of OpenAI's models.

    choice_of_added: Whether tool_choice may name a tool that only an additional_tools item has (PAI: from 5.6).
    """

    choice_of_added: bool


OPENAI = {
    "gpt-6-astra": OpenAI(True),
    "gpt-5.6": OpenAI(True),
    "gpt-5.4": OpenAI(False),
    "gpt-4o-mini": OpenAI(False),
}
