"""Lines: what can be said in the middle of a conversation, by provider, model and platform. (docs/reference/formats.md)

A conversation keeps one prefix for each line; models of the same line continue each other's conversations. What a model
accepts is in toolbelt.formats.profiles; this is what a form and a platform add to it. The sources, by the name that a
comment gives:

messages, changes
    https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages, "Tool changes"
tools
    https://developers.openai.com/api/docs/guides/tools-tool-search, "Add tools at a specific point in the input"
choice
    https://developers.openai.com/api/docs/guides/prompt-caching, "Manage tools with append-only updates"
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolbelt.core import conversation_means
from toolbelt.formats import profiles

# Where the Messages API runs: Anthropic's own takes more than the others.
Platform = Literal["api", "bedrock", "vertex", "foundry"]
PLATFORMS: tuple[Platform, ...] = ("api", "bedrock", "vertex", "foundry")

INLINE_TOOLS = "inline-tools-2026-09-15"
TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
# Opens and closes a change that is said in the user's turn.
NOTICE = "system-notice"
# What may be appended to a conversation, in bytes and in how many changes, before a new start is cheaper. Both are far
# below what a provider accepts: 10,000 tools and 4 MiB of definitions (changes).
MAX_BYTES = 262_144
MAX_ENTRIES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What can be said to models of one line.

    form: The name of the format. means: How tools change. role: Who says it. clears: Whether what holds for one step
    can be said so that it is cleared afterwards. betas: Values of the header ``anthropic-beta``. profile: What the
    model accepts.
    """

    name: str
    form: str
    means: conversation_means.Means
    role: Literal["system", "developer", "user"]
    clears: bool = False
    betas: tuple[str, ...] = ()
    max_bytes: int = MAX_BYTES
    profile: profiles.Profile = profiles.UNKNOWN

    @property
    def key(self) -> str:
        """Return what a conversation keeps the prefix under: the format and the line's name."""
        return f"{self.form}/{self.name}"

    @property
    def headers(self) -> dict[str, str]:
        """Return the HTTP headers that the requests of a conversation need."""
        return {"anthropic-beta": ",".join(self.betas)} if self.betas else {}

    @property
    def dispatches(self) -> bool:
        """Return whether tools that cannot be added are called through ``call_tool``, which the prefix has."""
        return self.means.add != "define"


_WORDS = conversation_means.Means(add="dispatch", remove="say")
_RESTRICTED = conversation_means.Means(add="dispatch", remove="restrict")
_CLAUDE = Line(
    name="claude",
    form="anthropic",
    means=conversation_means.Means(add="define", remove="withdraw", replace=True),
    role="system",
    clears=True,
    betas=(INLINE_TOOLS, CLEAR_AT),
)
# Other platforms do not define tools in the conversation (changes).
_CLAUDE_ELSEWHERE = replace(
    _CLAUDE,
    name="claude-platforms",
    means=conversation_means.Means(add="refer", remove="withdraw"),
    betas=(TOOL_CHANGES, CLEAR_AT),
)
_OPENAI = Line(
    name="openai",
    form="openai_responses",
    means=conversation_means.Means(add="define", remove="restrict"),
    role="developer",
)
_APPENDING = frozenset(line.key for line in (_CLAUDE, _CLAUDE_ELSEWHERE, _OPENAI))


def appends(key: str) -> bool:
    """Return whether tools are appended to conversations of the line with this key; if not, they are said in words."""
    return key in _APPENDING


def of(form: str, model: str, platform: Platform = "api") -> Line:
    """Return the line of a model in the format named ``form``. An unknown model is told everything in words."""
    profile = profiles.of(model, form)
    match form:
        case "anthropic" if profile.system_messages:
            line = _CLAUDE if platform == "api" else _CLAUDE_ELSEWHERE
            # A forced call is refused by some of these models, and costs the others their cache (messages).
            return replace(line, profile=replace(profile, forcing="no"))
        case "anthropic":
            profile = replace(profile, forcing="no")
        case "openai_responses" if profile.allowed_tools:
            return replace(_OPENAI, profile=profile)
        case "openai_chat" if profile.allowed_tools:
            return Line(name="openai", form=form, means=_RESTRICTED, role="system", profile=profile)
        case "gemini":
            return Line(name="gemini", form=form, means=_RESTRICTED, role="user", profile=profile)
    return Line(name="words", form=form, means=_WORDS, role="user", profile=profile)
