"""What may stand where a name, a reason, a text or a moment is sent? What every database can be asked for."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import pydantic

from toolbelt.api import schemas

# PostgreSQL cannot be asked for a text with NUL in it.
_STORABLE = r"^[^\x00]*$"

Name = Annotated[str, pydantic.Field(min_length=1, max_length=200, pattern=_STORABLE)]
Text = Annotated[str, pydantic.Field(max_length=200, pattern=_STORABLE)]
Reason = Annotated[
    str,
    pydantic.Field(max_length=500, pattern=_STORABLE, description="Why; it is kept in the log of changes."),
]
Confirm = Annotated[
    bool, pydantic.Field(description="Do it, though it is far-reaching: you have seen the differences.")
]


def _in_utc(moment: dt.datetime) -> dt.datetime:
    """Give the same moment in UTC: there are time zones that databases do not know."""
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("there is no such moment in UTC") from error


Moment = Annotated[pydantic.AwareDatetime, pydantic.AfterValidator(_in_utc)]


class Act(schemas.Query):
    """What goes with an act that has no body of its own for it."""

    reason: Reason = ""


class FarReaching(Act):
    """What goes with an act that may have to be confirmed."""

    confirm: Confirm = False
