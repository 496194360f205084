"""What does the editor of a sub-app send?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from toolbelt.core import catalog
from toolbelt.web import drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One sub-app as it was typed."""

    name: str = ""
    title: str = ""
    description: str = ""
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def entry(self) -> dict[str, Any]:
        """Give every key that the editor shows; None stands for one that has its default."""
        return {
            "title": self.title or None,
            "description": self.description or None,
            "tool_names": list(self.tools) or None,
            "agents": list(self.agents) or None,
        }


def of(sub_app: catalog.SubApp) -> Draft:
    """Begin with a sub-app that there is."""
    return Draft(
        name=sub_app.key,
        title=sub_app.title.strip(),
        description=drafts.text(sub_app.description),
        tools=sub_app.tool_names,
        agents=sub_app.agents,
    )


def read(posted: QueryDict, name: str, shown: Draft) -> Draft:
    """Read a form, with what its buttons do: tools that are added come last."""
    draft = Draft(
        name=name or posted.get("key", "").strip(),
        title=posted.get("title", "").strip(),
        description=drafts.text(posted.get("description", "")),
        tools=(*posted.getlist("tool"), *drafts.names(posted.get("add_tools", ""))),
        agents=tuple(drafts.ticked(posted.getlist("agents"), shown.agents)),
    )
    act = drafts.act(posted)
    if act is not None and act.rows == "tools":
        draft = dataclasses.replace(draft, tools=drafts.acted(draft.tools, act))
    return draft
