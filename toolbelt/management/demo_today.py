"""The events in the demo on the day that it is set up: a program declares its tools again, and agents make calls.

Both go through the functions that agents and their programs use, so that nothing is made up.
"""

from __future__ import annotations

import copy
from typing import Any

from toolbelt import processes
from toolbelt.control.servers import client_plugins
from toolbelt.core import errors
from toolbelt.runtime import calls

AGENT, PLUGIN = "support-desk", "helpdesk"
SESSION = "chat-today"
CHANGED = "refund_order"
# Each fails, for a reason that the call log shows.
_CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("tech-writer", "files__read", {"path": "notes/roadmap.md"}),
    ("assistant", "wikipedia", {"title": "Otter", "action": "summarise"}),
    ("kiosk", "slack__slack_post_message", {"channel_id": "C1", "text": "A visitor is waiting."}),
)


def make() -> None:
    """Let the program of the support desk declare its tools again, and make calls that fail.

    Do nothing in a database that is not the whole demo.
    """
    try:
        declared = client_plugins.declared(PLUGIN, AGENT)
    except errors.NotFound:
        return
    client_plugins.declare_from_program(AGENT, PLUGIN, _without_limit(declared))
    with processes.command():
        for agent, tool, arguments in _CALLS:
            calls.run(agent, tool, arguments, session=SESSION)
        with calls.admitted(AGENT, "helpdesk__find_order", {"order": "A-1042"}, session=SESSION) as call:
            call.result({"order": "A-1042", "shipped": True})


def _without_limit(declared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the declaration of a newer version of the program, which refunds any amount."""
    tools = copy.deepcopy(declared)
    for tool in tools:
        if tool["name"] == CHANGED:
            tool["description"] = tool["description"].replace(", up to 100 euros", "")
            tool["input_schema"]["properties"]["cents"].pop("maximum", None)
    return tools
