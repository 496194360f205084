"""Checks that options hold no secrets that are written out."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt.control.doctor import findings
from toolbelt.core import belts, texts
from toolbelt.store import agents, catalog

# How many places a finding names.


def examine() -> Iterator[findings.Finding]:
    """Yield a finding if options that an older version stored hold secrets."""
    places = [*_places()]
    if places:
        yield findings.Finding(
            code="secret-in-options",
            message=f"{texts.counted(len(places), 'use')} of tools with a secret in the options:"
            f" {texts.listing(places)}.",
            way_out="Set each as a secret of the tool's plugin or as a variable, and write ${NAME} in the options."
            " Until then they keep working, and are withheld from exports and pages.",
            level="note",
        )


def _places() -> Iterator[str]:
    for toolkit in catalog.toolkits():
        for member in toolkit.members:
            if belts.has_secret_option(member.options):
                yield f"{member.tool} in the toolkit {toolkit.key}"
    for agent in agents.load_all():
        for always in agent.tools:
            if belts.has_secret_option(always.options):
                yield f"{always.tool} of the agent {agent.key}"
