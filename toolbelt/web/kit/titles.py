"""Labels of entries: the title first, and the key as code beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.control.access import access_index
from toolbelt.control.reports import queries
from toolbelt.core import catalog
from toolbelt.web.kit import texts


def title_of(stored: catalog.Catalog, kind: str, key: str) -> str:
    """Return the title of a toolkit, plugin or sub-app; empty if it has none, or if it equals the key."""
    kinds: dict[str, Mapping[str, Any]]
    kinds = {"toolkit": stored.toolkits, "plugin": stored.plugins, "sub_app": stored.sub_apps}
    entry = kinds.get(kind, {}).get(key)
    title = entry.title if entry is not None else ""
    return "" if title == key else texts.visible(title)


def label(kind: str, key: str) -> str:
    """Return the label of an entry in a sentence, for the filter ``code_spans``: ``Team chat `team_chat```."""
    if kind == "agent":
        title = texts.visible(queries.agent_title(key))
    else:
        title = title_of(access_index.catalog_view().catalog, kind, key)
    return f"{title} `{key}`" if title and title != key else key
