"""Communication between a call and its transport: the last check before sending, and whether it can have run.

A call that was allowed may then wait for a connection, a TLS handshake, or the HTTP client's pool. In the meantime it
may be denied, so the transport checks again at the last moment.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from toolbelt.plugins import background


class LastCheck:
    """The check of one attempt to call. It is made at most once, so that it does not delay what follows the request,
    such as a cancellation. :attr:`has_not_run`: the server was not reached, or no longer knows the session.
    """

    def __init__(self, check: background.Check | None) -> None:
        self._check = check
        self.refusal: Exception | None = None
        # Whether the request may have been written, in part at least.
        self.is_made = False
        self.has_not_run = False

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let the transport of this context read the check."""
        token = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(token)

    async def make(self) -> None:
        """Make the check, unless it was made. What it raises is raised, and kept as :attr:`refusal`."""
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
