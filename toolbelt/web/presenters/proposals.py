"""What does an operator see before a change that reaches many agents?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import access, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What becomes of one agent. `tools` and `tokens` go from `before` to `after`; the deltas carry their sign.

    `added` and `removed` are tools that become active, or are so no longer; `gained` and `lost` can be had on request,
    or no longer. `notes` say what no number tells.
    """

    agent: str
    marks: tuple[access.Mark, ...]
    effect: pieces.Effect
    added: tuple[str, ...]
    removed: tuple[str, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """What stands between a form and its being saved, as a dialog or a page. `again`: something changed since it was
    shown.

    `fields` are those of the form and what was shown; `back` leads out, and the form's button `again` back into it
    where `may_edit`.
    """

    title: str
    told: str
    rest: str
    caches: str
    again: bool
    differences: tuple[pieces.Difference, ...]
    reached: tuple[Reached, ...]
    action: str
    fields: tuple[pieces.Field, ...]
    reason: str
    word: str
    dangerous: bool
    may_edit: bool
    back: str
