"""A catalog in which ``mail__send`` can be granted and denied in every way, for tests of the resolution."""

from __future__ import annotations

from typing import Any

from tests.core import building
from toolbelt.core import agents, catalog

HOUSE = catalog.Loadout(name="house", plugins=("web",), categories=("git",), discoverable=("cal*", "mail"))
STRICT = catalog.Loadout(name="strict", parent="house", disabled=("mail__send", "calc"))


def stored(**tool_fields: Any) -> catalog.Catalog:
    """Return the catalog, in which ``mail__send`` has these fields."""
    return building.catalog_of(
        [
            "git__log",
            "web__get",
            building.tool("mail__send", **tool_fields),
            "calc",
            building.tool("clock", default_on=True),
        ],
        toolkits={"post": "mail__send git__log", "more": "mail__send calc"},
        loadouts=[HOUSE, STRICT],
        sub_apps=[catalog.SubApp(key="room", tool_names=("mail__send",), agents=("ada",))],
    )


def decide(ada: agents.Agent, key: str = "mail__send", **fields: Any) -> tuple[str, str]:
    """Return the state of a tool and its reason code."""
    return building.decided(stored(), ada, key, **fields)


# Every grant of mail__send together.
GRANTED: dict[str, Any] = {
    "tools": "mail__send",
    "overrides": {"mail__send": True},
    "switches": {"post": True, "more": True},
    "allowed": "post more",
    "initial": "post",
}
