"""What may a list of entries be narrowed by? A text in its names, titles and descriptions, and a few plain traits.

What traits there are is control.lists' to know (its ``TRAITS``); a test sees to it that these are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from toolbelt.api import names, paging
from toolbelt.core import belts

_Name = Annotated[names.Text | None, pydantic.Field(description="Only those with this one.")]
_YesNo = Annotated[
    names.BooleanInAddress | None, pydantic.Field(description="Only those that are so, or that are not.")
]


class Asked(paging.Asked):
    """Which entries, and which page of them."""

    q: Annotated[names.Text, pydantic.Field(description="Is in a name, a title or a description.")] = ""

    def wanted(self) -> dict[str, Any]:
        """Give the traits that are asked for."""
        return self.model_dump(exclude={*Asked.model_fields}, exclude_none=True)


class Plugins(Asked):
    category: _Name = None
    status: _Name = None
    active: _YesNo = None
    trusted: _YesNo = None
    blocked: _YesNo = None


class Tools(Asked):
    plugin: _Name = None
    category: _Name = None
    toolkit: _Name = None
    blocked: _YesNo = None
    retired: _YesNo = None
    seen: _YesNo = None


class Toolkits(Asked):
    plugin: _Name = None
    tool: _Name = None
    blocked: _YesNo = None


class Loadouts(Asked):
    parent: _Name = None


class Agents(Asked):
    kind: _Name = None
    loadout: Annotated[
        names.Text | None, pydantic.Field(description="Only those that it is in force for.")
    ] = None
    protected: _YesNo = None
    archived: Annotated[
        names.BooleanInAddress,
        pydantic.Field(description="Those that are archived; else those that are not."),
    ] = False


class SubApps(Asked):
    agent: _Name = None
    tool: _Name = None


BY_KIND: Mapping[belts.KindName, type[Asked]] = {
    "category": Asked,
    "plugin": Plugins,
    "tool": Tools,
    "toolkit": Toolkits,
    "loadout": Loadouts,
    "agent": Agents,
    "sub_app": SubApps,
}
