"""``manage.py block TARGET``: block a tool, a toolkit or a plugin for everyone."""

from __future__ import annotations

from toolbelt.management import blocks


class Command(blocks.Command):
    """Block it for everyone."""

    help = (
        "Block a tool, a toolkit or a plugin for everyone, at once; running calls of its tools are cancelled."
    )
    on = True
