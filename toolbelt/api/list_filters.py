"""The filters of lists of entries: a search text, and a few fields for each kind.

They correspond to `control.lists.TRAITS`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from toolbelt.api import names, paging
from toolbelt.core import belts

_Name = Annotated[names.Text | None, pydantic.Field(description="Only entries with this value.")]
_YesNo = Annotated[
    names.BooleanInAddress | None,
    pydantic.Field(description="Only entries for which this is true, or false."),
]


class ListQuery(paging.PageQuery):
    """The search text and the page of a list of entries."""

    q: Annotated[
        names.Text,
        pydantic.Field(description="Only entries with this text in their name, title or description."),
    ] = ""

    def filters(self) -> dict[str, Any]:
        """Return the filters that the request sets."""
        return self.model_dump(exclude={*ListQuery.model_fields}, exclude_none=True)


class Plugins(ListQuery):
    category: _Name = None
    status: _Name = None
    active: _YesNo = None
    trusted: _YesNo = None
    blocked: _YesNo = None


class Tools(ListQuery):
    plugin: _Name = None
    category: _Name = None
    toolkit: _Name = None
    blocked: _YesNo = None
    retired: _YesNo = None
    seen: _YesNo = None


class Toolkits(ListQuery):
    plugin: _Name = None
    tool: _Name = None
    blocked: _YesNo = None


class Loadouts(ListQuery):
    parent: _Name = None


class Agents(ListQuery):
    kind: _Name = None
    loadout: Annotated[
        names.Text | None,
        pydantic.Field(description="Only agents that use this loadout, their own or their kind's."),
    ] = None
    protected: _YesNo = None
    archived: Annotated[
        names.BooleanInAddress,
        pydantic.Field(description="List archived agents instead of the others."),
    ] = False


class SubApps(ListQuery):
    agent: _Name = None
    tool: _Name = None


class GateRules(ListQuery):
    effect: _Name = None
    observed: _YesNo = None
    agent: Annotated[names.Text | None, pydantic.Field(description="Only rules that name this agent.")] = None
    tool: Annotated[names.Text | None, pydantic.Field(description="Only rules that concern this tool.")] = (
        None
    )


BY_KIND: Mapping[belts.KindName, type[ListQuery]] = {
    "category": ListQuery,
    "plugin": Plugins,
    "tool": Tools,
    "toolkit": Toolkits,
    "loadout": Loadouts,
    "agent": Agents,
    "sub_app": SubApps,
    "gate_rule": GateRules,
}
