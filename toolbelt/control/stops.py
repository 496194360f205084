"""How does an operator stop a tool or a toolkit for everyone, at once? (semantics: The resolution, question 2)

It is done without a question, as an emergency is no time for one, and can be taken back like any other change. Plugins
are stopped by :func:`toolbelt.control.providers.switch`.
"""

from __future__ import annotations

from typing import Literal

from toolbelt.control import actors, entries, writing

Kind = Literal["tool", "toolkit"]


def stop(
    actor: actors.Actor, kind: Kind, name: str, on: bool, *, was: bool, reason: str = ""
) -> writing.Change:
    """Stop it for everyone, or lift the stop; ``was`` is what the writer saw.

    Raises errors.NotFound, and errors.Stale where somebody was faster.
    """
    # An entry leaves out what is as usual.
    wanted = {"blocked": True if on else None}
    return entries.change(actor, kind, name, wanted, was={"blocked": True if was else None}, reason=reason)
