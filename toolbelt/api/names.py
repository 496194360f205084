"""The field types that bodies and queries share: names, reasons, booleans and times."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated

import pydantic

from toolbelt.api import schemas
from toolbelt.control import proofs

_BOOLEANS = {"true": True, "false": False}
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}")
# PostgreSQL accepts no text that contains NUL.
_STORABLE = r"^[^\x00]*$"

Name = Annotated[str, pydantic.Field(min_length=1, max_length=200, pattern=_STORABLE)]
Text = Annotated[str, pydantic.Field(max_length=200, pattern=_STORABLE)]
Reason = Annotated[
    str,
    pydantic.Field(max_length=500, pattern=_STORABLE, description="A reason, for the audit log."),
]
# In a body: true or false, and no number or text that could be converted to it.
Boolean = Annotated[bool, pydantic.Strict()]
# In a query, where every value is text: only "true" or "false".
BooleanInAddress = Annotated[
    bool, pydantic.BeforeValidator(lambda value: _BOOLEANS.get(value, value)), pydantic.Strict()
]
_FAR_REACHING = pydantic.Field(
    description="Apply the change even if it is far-reaching. Without it, such a change returns 409"
    " `confirmation-required` with the differences."
)
Confirm = Annotated[Boolean, _FAR_REACHING]


def _check_format(value: object) -> object:
    """Return the value if it is a time in text form: a number could mean seconds or milliseconds."""
    if not isinstance(value, str) or not _MOMENT.match(value):
        raise ValueError("not a time with its time zone, such as 2026-11-22T14:05:00Z")
    return value


def _to_utc(moment: dt.datetime) -> dt.datetime:
    """Return the same time in UTC: some time zones are unknown to databases."""
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("this time cannot be converted to UTC") from error


Timestamp = Annotated[
    pydantic.AwareDatetime, pydantic.BeforeValidator(_check_format), pydantic.AfterValidator(_to_utc)
]


_DRY_RUN = pydantic.Field(
    description="Only report what the change would do, including what would have to be confirmed."
)
DryRun = Annotated[Boolean, _DRY_RUN]
Days = Annotated[
    int,
    pydantic.Field(
        ge=1, le=proofs.MAX_DAYS, description=f"The calls of the last days: 1 to {proofs.MAX_DAYS}."
    ),
]
Basis = Annotated[
    proofs.Basis,
    pydantic.Field(description="Decide the calls as everything is configured `now`, or was `then`."),
]
Prove = Annotated[
    int | None,
    pydantic.Field(
        ge=1,
        le=proofs.MAX_DAYS,
        description="For a dry run: also report, as `past`, what the change would have done to the calls of so many"
        f" days, 1 to {proofs.MAX_DAYS}.",
    ),
]

Draft = Annotated[
    str | None,
    pydantic.Field(
        min_length=1,
        max_length=200,
        pattern=_STORABLE,
        description="For a dry run: also save the change as a draft with this title. The answer has its key.",
    ),
]


class ReasonQuery(schemas.Query):
    """The reason of a change whose body has no field for it."""

    reason: Reason = ""


class ConfirmQuery(ReasonQuery):
    """The reason and the confirmation of a change that may need to be confirmed."""

    confirm: Annotated[BooleanInAddress, _FAR_REACHING] = False


class TryQuery(ReasonQuery):
    """The parameters of a change that can also be only tried."""

    dry_run: Annotated[BooleanInAddress, _DRY_RUN] = False
    prove: Prove = None
    draft: Draft = None


class DryRunQuery(TryQuery, ConfirmQuery):
    """The parameters of a change that may need to be confirmed, and can also be only tried."""


class TryBody(schemas.Body):
    """What asks in a body to only try a change."""

    dry_run: DryRun = False
    prove: Prove = None
    draft: Draft = None
