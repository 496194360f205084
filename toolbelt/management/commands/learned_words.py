"""``manage.py learned_words``: count or erase the words that the search of tools learned from use."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.core import texts
from toolbelt.management import terminal
from toolbelt.runtime.records import learning


class Command(terminal.Command):
    """Count or erase the words that the search of tools learned from use."""

    help = "Print how many words the search of tools has learned from use, or erase them."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what to erase."""
        parser.add_argument(
            "--erase", action="store_true", help="erase all words, or those of --tool and --agent"
        )
        parser.add_argument("--tool", metavar="KEY", default="", help="erase the words of this tool only")
        parser.add_argument("--agent", metavar="KEY", default="", help="erase the words of this agent only")

    def handle(self, *args: Any, erase: bool, tool: str, agent: str, **options: Any) -> None:
        """Count or erase the words."""
        if (tool or agent) and not erase:
            raise CommandError("--tool and --agent need --erase.")
        if erase:
            erased = learning.erase(tool=tool, agent=agent)
            self.stdout.write(f"Erased the learned words of {texts.counted(erased, 'tool')}.")
            return
        learned = learning.count()
        words, tools = texts.counted(learned.words, "word"), texts.counted(learned.tools, "tool")
        state = "on" if conf.LEARN_FROM_USE else "off"
        self.stdout.write(f"{words} of {tools}. Learning from use is {state}.")
