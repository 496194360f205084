"""The forms whose changes are proved: what they would have done is shown beside them."""

from __future__ import annotations

from django.urls import Resolver404, ResolverMatch, resolve

# The views whose changes are proved. They only write to the database, which is rolled back: no other view may be here.
PROVED = frozenset(
    {
        *("switch", "override", "reset", "apply_bulk", "copy", "change_settings", "archive", "undo"),
        *("block_tool", "block_toolkit", "switch_plugin", "decide", "import_belt"),
        *(
            f"{act}_{kind}"
            for act in ("create", "save", "remove")
            for kind in ("toolkit", "loadout", "sub_app", "gate_rule")
        ),
    }
)


def find(address: str) -> ResolverMatch | None:
    """Return the view that a form with this address is sent to; None unless its changes are proved."""
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        return None
    return match if match.namespaces == ["web"] and match.url_name in PROVED else None
