"""What a call and the transport that sends it tell each other: may it be sent, and was its session refused?

A call that was admitted may wait: for a connection, for a TLS handshake, for a free connection of the HTTP client's
pool. What was allowed before that may be denied after it, so the transport asks again at the last moment.
"""

from __future__ import annotations

import contextvars

from toolbelt.plugins import background


class LastCheck:
    """The check of one attempt to call. It is made at most once: what follows the request (a cancellation) is not held
    up. :attr:`is_session_refused`: the server does not know the session any more, and has run nothing.
    """

    def __init__(self, check: background.Check | None) -> None:
        self._check = check
        self.refusal: Exception | None = None
        self.is_session_refused = False

    async def make(self) -> None:
        """Make the check, unless it was made; raise what it raises and keep that as :attr:`refusal`."""
        check, self._check = self._check, None
        if check is None:
            return
        try:
            await check()
        except Exception as error:
            self.refusal = error
            raise


# The check of the call whose request is being sent. The client hands the context of a request to its transport.
CURRENT: contextvars.ContextVar[LastCheck | None] = contextvars.ContextVar(
    "toolbelt_last_check", default=None
)
