"""What stands around every page?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chrome:
    """The frame: who is looking, and at which of the main pages ("agents", "toolkits", … or "" for none of them).

    `user` is empty for someone who has not logged in: the frame then has no navigation. `request_id` is
    printed on error pages, for the operator to quote. `to_look_at` counts the tools that wait for a look. The page
    shows all that was written up to `revision`. `command` is what stands before the name of a command, to run it here.
    `is_answer`: the page answers a form, so another one, or none, is at its address.
    """

    user: str = ""
    here: str = ""
    agents: int | None = None
    revision: int = 0
    to_look_at: int = 0
    may_administer: bool = False
    may_see_calls: bool = False
    may_see_tokens: bool = False
    request_id: str = ""
    command: str = ""
    is_answer: bool = False
