"""What stands around every page?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chrome:
    """The frame: who is looking, and at which of the main pages ("agents", "changes" or "" for none of them).

    `user` is empty for someone who has not logged in: the frame then has no navigation. `request_id` is
    printed on error pages, for the operator to quote.
    """

    user: str = ""
    here: str = ""
    agents: int | None = None
    may_administer: bool = False
    request_id: str = ""
