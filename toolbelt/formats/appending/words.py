"""Changes of a surface in words, for the end of a conversation.

They contain names, and what operators and installed code wrote. A tool's description may come from an upstream server,
and never stands in a text that a model may take for its operator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolbelt.core import conversations, policy
from toolbelt.formats.appending import lines


def of(
    changes: conversations.Changes,
    sections: Mapping[str, policy.Section],
    loadable: Mapping[str, str],
) -> str:
    """Return the changes as text: the ``sections`` of the policy, and the lines of ``loadable`` toolkits, by name."""
    told: list[str] = []
    available = sorted((*changes.added, *changes.offered))
    if available:
        told.append(f"Available from now on: {_listed(available)}.")
    if changes.through:
        told.append(
            f"Available from now on through call_tool: {_listed(changes.through)}. Search for a name with"
            " search_tools to read its input_schema."
        )
    if changes.replaced:
        told.append(f"Changed, with new definitions: {_listed(changes.replaced)}.")
    if changes.altered:
        told.append(
            f"Changed: {_listed(changes.altered)}. A call that no longer fits is answered with what to correct."
        )
    if changes.removed:
        told.append(f"No longer available: {_listed(changes.removed)}. Calls of them are refused.")
    told += [
        f"This replaces any earlier text about the {key}:\n{sections[key].tagged}" for key in changes.said
    ]
    told += [f"The earlier text about the {key} no longer applies." for key in changes.ended]
    if changes.loadable:
        told.append(
            "\n".join(
                ("Toolkits that you may load from now on:", *(loadable[key] for key in changes.loadable))
            )
        )
    if changes.unloadable:
        told.append(f"Toolkits that you may no longer load: {_listed(changes.unloadable)}.")
    return "\n".join(told)


def notice(text: str) -> str:
    """Return text for the user's turn, marked as not the user's own."""
    return f"<{lines.NOTICE}>\n{text}\n</{lines.NOTICE}>"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
