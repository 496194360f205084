"""The pages that a search leads to, with the permission that each needs, and other words for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from toolbelt.control.people import rights
from toolbelt.web.kit import pieces, words


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    name: str
    other_words: str = ""
    # The permission, or the kind that the reader must be allowed to view.
    permission: str = ""
    kind: str = ""
    is_for_staff: bool = False


_PAGES = (
    _Page("Overview", "home", "home start attention"),
    _Page("Review", "review", "inbox approve reject changed tools"),
    _Page("Agents", "agents", "list"),
    _Page("Matrix", "matrix", "switches table agents toolkits"),
    _Page("Compare", "compare", "difference agents"),
    _Page("Toolkits", "toolkits"),
    _Page("Tools", "tools", "catalog"),
    _Page("Loadouts", "loadouts", "profiles"),
    _Page("Servers & plugins", "plugins", "mcp sources upstream"),
    _Page("Sub-apps", "sub_apps"),
    _Page("Calls", "calls", "usage unused errors", kind="call_record"),
    _Page("Audit log", "audit_log", "history who changed undo"),
    _Page("Tokens", "tokens", "api credentials", kind="api_token"),
    _Page("People & roles", "people", "users operators administrators", permission="auth.view_user"),
    _Page("Import & export", "import_export", "configuration file backup"),
    _Page("System status", "status", "health version admin", is_for_staff=True),
    _Page("Your account", "account", "password theme permissions"),
    _Page("Help & shortcuts", "help", "keyboard rules glossary"),
    _Page("New agent", "new_agent", "create add", permission="toolbelt.add_agent"),
    _Page("New toolkit", "new_toolkit", "create add", permission="toolbelt.add_toolkit"),
    _Page("New loadout", "new_loadout", "create add", permission="toolbelt.add_loadout"),
    _Page("New sub-app", "new_sub_app", "create add", permission="toolbelt.add_subapp"),
    _Page("Add server", "add_server", "create new mcp plugin", permission="toolbelt.add_plugin"),
    _Page(
        "Import servers", "import_servers", "mcp json file claude cursor", permission="toolbelt.add_plugin"
    ),
)


def matching(text: str, user: rights.User) -> Iterator[pieces.View]:
    """Yield the pages that a text names, and that the user may open; without a text, all."""
    for page in _PAGES:
        if page.permission and not user.has_perm(page.permission):
            continue
        if page.kind and not rights.may_read(user, page.kind):
            continue
        if page.is_for_staff and not getattr(user, "is_staff", False):
            continue
        if words.contains(text, page.title, page.other_words):
            yield pieces.View(title=page.title, url=reverse(f"web:{page.name}"), key="", about="")
