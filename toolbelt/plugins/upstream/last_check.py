"""Communication between a call and its transport: the last check before sending, and whether it can have run.

A call that was allowed may then wait for a connection, a TLS handshake, or the HTTP client's pool. In the meantime it
may be denied, so the transport checks again at the last moment.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from toolbelt.plugins import background


class OverError(Exception):
    """The call was cancelled or has ended before its request was written."""


class LastCheck:
    """The check of one attempt to call. It is made at most once, so that it does not delay what follows the request,
    such as a cancellation. :attr:`has_not_run`: the server was not reached, or no longer knows the session.
    """

    def __init__(self, check: background.Check | None) -> None:
        self._check = self._all = check
        self.refusal: Exception | None = None
        self._is_claimed = self._is_over = False
        # Whether the request may have been written, in part at least.
        self.is_made = False
        self.has_not_run = False
        # Whether the server ended its answer before it was complete.
        self.is_cut = False
        # The id of the request, the HTTP status of the answer, and when that says to try again.
        self.request_id: int | str | None = None
        self.status, self.retry_after = 0, ""

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let the transport of this context read the check. After the block, nothing is sent for it anymore."""
        token = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(token)
            self._is_over = True

    def note_status(self, status: int, retry_after: str) -> None:
        """Record the HTTP status of the answer, and its Retry-After."""
        self.status, self.retry_after = status, retry_after

    def again(self) -> None:
        """Let the check be made again: the server refused the request unread, and it is sent once more."""
        self._check, self.is_made = self._all, False

    def claim(self, id_: int | str) -> bool:
        """Return True once: for the request itself, not for what else is sent in its context, such as its cancellation,
        or the answer to a question.
        """
        is_first, self._is_claimed = not self._is_claimed, True
        if is_first:
            self.request_id = id_
        return is_first

    async def make(self) -> None:
        """Make the check, unless it was made. What it raises is raised, and kept as :attr:`refusal`. Raise OverError if
        the call has ended meanwhile.
        """
        if self._is_over and not self.is_made:
            self.refusal = OverError()
            raise self.refusal
        self.is_made = True
        check, self._check = self._check, None
        if check is None:
            return
        try:
            await check()
        except Exception as error:
            self.refusal = error
            raise


# The check of the call whose request is being sent. The client passes the context of a request to its transport.
CURRENT: contextvars.ContextVar[LastCheck | None] = contextvars.ContextVar(
    "toolbelt_last_check", default=None
)
