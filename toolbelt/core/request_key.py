"""The key of a request: for whom it is answered, from where it arrives to where it is sent on."""

from __future__ import annotations

from typing import NamedTuple


class RequestKey(NamedTuple):
    """The agent, its conversation, the request in that, and the kind of subagent that the request is for.

    Without a ``session``, nothing can be loaded.
    """

    agent: str
    session: str | None = None
    request_id: str | None = None
    subagent: str | None = None
