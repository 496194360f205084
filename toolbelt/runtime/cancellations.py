"""Which calls does nobody want any more? Told in one process of a server, heard in whichever runs them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from toolbelt.store import cancellations, clock


def begun() -> dt.datetime:
    """Give this moment, as that in which a call began."""
    return clock.now()


def cancel(key: str) -> None:
    """Let whoever runs the call with this key end it."""
    cancellations.ask(key)


def cancelled(begun: Mapping[str, dt.datetime]) -> set[str]:
    """Say which of the calls that run are to end, by key; each with the moment in which the latest of it began.

    What was asked for before that was meant for another call, which had ended already. One query.
    """
    return {key for key, at in cancellations.asked(begun.keys()).items() if at >= begun[key]}
