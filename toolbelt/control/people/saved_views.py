"""Views that people save of the dashboard's lists. They change nothing for anyone else, so they are not audited."""

from __future__ import annotations

from typing import Final

from toolbelt.core import errors
from toolbelt.store import saved_views

SavedView = saved_views.SavedView
# The maximum number of saved views per list.
MAX_VIEWS: Final = 20

of = saved_views.of
remove = saved_views.remove


def save(user: int, page: str, name: str, query: str) -> None:
    """Save the filters of a list under a name; a view of the same name is replaced.

    Raise errors.Refused for filters that narrow nothing, or more than ``MAX_VIEWS`` views of the list.
    """
    if not query:
        raise errors.Refused("There is nothing to save: choose filters first.")
    names = {view.name for view in of(user, page)}
    if name not in names and len(names) >= MAX_VIEWS:
        raise errors.Refused(
            f"You have {len(names)} saved views of this list, which is the maximum. Delete one first."
        )
    saved_views.put(user, page, SavedView(name=name, query=query))
