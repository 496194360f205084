"""What shape do answers and bodies have that more than one operation shares?"""

from __future__ import annotations

from typing import Any

import ninja
import pydantic


class Body(ninja.Schema):
    """What is sent: a key that it does not have is refused, with its path."""

    model_config = {"extra": "forbid"}


class Query(ninja.Schema):
    """What is asked in the address: a name that it does not have is refused, with that name."""

    model_config = {"extra": "forbid"}

    @pydantic.model_validator(mode="before")
    @classmethod
    def _with_what_is_unknown(cls, known: Any, info: pydantic.ValidationInfo) -> Any:
        """Put back what was left out as unknown, so that it is refused like an unknown key of a body."""
        request = (info.context or {}).get("request")
        if request is None or not isinstance(known, dict):
            return known
        return {**{name: request.GET[name] for name in request.GET if name not in cls.model_fields}, **known}


class Wrong(ninja.Schema):
    """One thing that is wrong, and where."""

    path: str
    message: str


class Problem(ninja.Schema):
    """What went wrong (RFC 9457). ``code`` is stable; some problems say more, such as what it is now."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[Wrong] | None = None
    nearest: list[str] | None = None
    was: Any = None
    now: Any = None
    wanted: Any = None
    reasons: list[str] | None = None
    differences: dict[str, Any] | None = None
    request_id: str | None = None
