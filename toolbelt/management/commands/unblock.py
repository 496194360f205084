"""``manage.py unblock TARGET``: end the block of a tool, a toolkit or a plugin."""

from __future__ import annotations

from toolbelt.management import blocks


class Command(blocks.Command):
    """Unblock it."""

    help = "Unblock a tool, a toolkit or a plugin: agents have its tools again, as their switches and loadouts say."
    on = False
