"""What may stand where a name, a reason, a text or a moment is sent? What every database can be asked for."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated

import pydantic

from toolbelt.api import schemas

# PostgreSQL cannot be asked for a text with NUL in it.
_BOOLEANS = {"true": True, "false": False}
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}")
_STORABLE = r"^[^\x00]*$"

Name = Annotated[str, pydantic.Field(min_length=1, max_length=200, pattern=_STORABLE)]
Text = Annotated[str, pydantic.Field(max_length=200, pattern=_STORABLE)]
Reason = Annotated[
    str,
    pydantic.Field(max_length=500, pattern=_STORABLE, description="Why; it is kept in the log of changes."),
]
# True or false of a body, and nothing that could be taken for it: no number, no text.
Boolean = Annotated[bool, pydantic.Strict()]
# The same of an address, where there are texts alone: true and false, and no other way to write them.
BooleanInAddress = Annotated[
    bool, pydantic.BeforeValidator(lambda value: _BOOLEANS.get(value, value)), pydantic.Strict()
]
_FAR_REACHING = pydantic.Field(description="Do it, though it is far-reaching: you have seen the differences.")
Confirm = Annotated[Boolean, _FAR_REACHING]


def _written(value: object) -> object:
    """Return the value if it is a moment as text: a number could be of seconds, or of milliseconds."""
    if not isinstance(value, str) or not _MOMENT.match(value):
        raise ValueError("not a moment with its zone, such as 2026-11-22T14:05:00Z")
    return value


def _in_utc(moment: dt.datetime) -> dt.datetime:
    """Give the same moment in UTC: there are time zones that databases do not know."""
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("there is no such moment in UTC") from error


Moment = Annotated[
    pydantic.AwareDatetime, pydantic.BeforeValidator(_written), pydantic.AfterValidator(_in_utc)
]


class Act(schemas.Query):
    """What goes with an act that has no body of its own for it."""

    reason: Reason = ""


class FarReaching(Act):
    """What goes with an act that may have to be confirmed."""

    confirm: Annotated[BooleanInAddress, _FAR_REACHING] = False
