"""The access tokens of sign-ins at upstream servers, for the connections of this process.

A token is renewed before it expires, and once if the server refuses it. Of all processes, one renews it: it reserves
that in the row, and the others wait for the result. It is no transaction, which would block all writers of SQLite while
the authorization server answers. After a failure, no process tries again for a while; after a refusal, none does until
someone signs in.
"""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import structlog
from django import db

from toolbelt import conf
from toolbelt.core import catalog, connections, errors
from toolbelt.plugins.upstream import live_connection
from toolbelt.runtime import masking, threads
from toolbelt.store import clock, listings, server_sign_ins

if TYPE_CHECKING:
    from toolbelt.plugins.upstream import authorization

# A token is renewed this long before it expires, or when a tenth of its time is left.
MAX_EARLY = dt.timedelta(seconds=30)
# For how long a token is used without looking whether the sign-in is still the same.
SEEN_SECONDS = 10.0
# How often a process looks whether another one has renewed the token, and for how long.
POLL_SECONDS, WAIT_SECONDS = 0.05, 30.0
# A token that is refused when it is newer than this is not renewed: another one would be refused as well. Doubled for
# each refusal in a row, up to a limit.
NEW, MAX_NEW = dt.timedelta(seconds=1), dt.timedelta(minutes=10)

_WAY_OUT = "An operator can sign in on the server's page."
_OWN_WAY_OUT = "They can sign in there on their page Account."

_log = structlog.get_logger(__name__)


class Tokens:
    """The tokens of one connection to a server. Implements :class:`live_connection.Tokens`."""

    def __init__(
        self, plugin: catalog.Plugin, settings: connections.Connection, person: int | None = None
    ) -> None:
        self._plugin, self._url, self._person = plugin.name, settings.url, person
        self._token, self._seen = "", 0.0
        self._expires: dt.datetime | None = None
        self._lock = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None

    @property
    def _way_out(self) -> str:
        return _WAY_OUT if self._person is None else _OWN_WAY_OUT

    async def current(self) -> str:
        """Return a token that has not expired. Raise UnreachableError."""
        return await self._usable("")

    async def renewed(self, refused: str) -> str:
        """Return another token than this one; the same one if it is new. Raise UnreachableError."""
        return await self._usable(refused)

    async def demanded(self, scopes: Sequence[str]) -> live_connection.ScopesNeededError:
        """Note that the server demands these scopes, and return the error of the request."""
        found = await threads.run(server_sign_ins.find, self._plugin, self._person)
        if found is not None and found.url == self._url:
            await threads.run(server_sign_ins.demand, found, scopes)
        listed = " ".join(scopes)
        return live_connection.ScopesNeededError(
            f"{self._plugin} demands the scopes {listed} for this. {self._way_out}"
        )

    async def _usable(self, refused: str) -> str:
        async with self._lock:
            is_seen = time.monotonic() < self._seen + SEEN_SECONDS
            is_valid = self._expires is None or clock.now() < self._expires
            if not (self._token and is_seen and is_valid and self._token != refused):
                await self._read(refused)
            return self._token

    async def _read(self, refused: str) -> None:
        """Read the sign-in until its token can be used, and renew it if no other process does."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            found = await threads.run(server_sign_ins.find, self._plugin, self._person)
            if found is None:
                who = "No one" if self._person is None else "This person"
                state = "is signed in" if self._person is None else "is not signed in"
                raise live_connection.SignInNeededError(f"{who} {state} at {self._plugin}. {self._way_out}")
            grant = self._readable(found)
            token, expires = grant.token.access_token, _early(found.renewed, found.expires)
            is_valid = expires is None or clock.now() < expires
            is_usable = token != refused or clock.now() < found.renewed + _new_for(found.refusals)
            if is_usable and is_valid:
                self._keep(token, expires)
                return
            if found.error and found.busy_until is not None and found.busy_until > clock.now():
                raise live_connection.UnreachableError(
                    f"The access to {self._plugin} could not be renewed. {found.error}"
                )
            lease = await threads.run(server_sign_ins.lease, found)
            if lease is not None:
                # In a task of its own, because who waits may give up, and what was renewed must be stored; in a context
                # of its own, because the last check of a call is not for this request.
                renewal = self._renew(found, lease, grant, was_refused=is_valid)
                loop = asyncio.get_running_loop()
                self._renewal = loop.create_task(renewal, context=contextvars.Context())
                await asyncio.shield(self._renewal)
                return
            if time.monotonic() > until:
                raise live_connection.UnreachableError(
                    f"Another process renews the access to {self._plugin}, and has not finished."
                )
            await asyncio.sleep(POLL_SECONDS)

    def _readable(self, found: server_sign_ins.SignIn) -> authorization.Grant:
        """Return the grant of a sign-in. Raise SignInNeededError if it cannot be used."""
        from toolbelt.plugins.upstream import authorization

        if found.url != self._url:
            raise live_connection.SignInNeededError(
                f"The address of {self._plugin} has changed since {found.signed_in_by} signed in there. {self._way_out}"
            )
        if found.ended:
            raise live_connection.SignInNeededError(
                f"The sign-in at {self._plugin} has ended. {found.error} {self._way_out}"
            )
        try:
            return authorization.Grant.model_validate_json(found.grant())
        except errors.Refused as error:
            raise live_connection.SignInNeededError(str(error)) from error

    async def _renew(
        self,
        found: server_sign_ins.SignIn,
        lease: dt.datetime,
        grant: authorization.Grant,
        *,
        was_refused: bool,
    ) -> None:
        """Renew the token and keep it; store why if that fails, and raise UnreachableError."""
        from toolbelt.plugins.upstream import authorization

        try:
            renewed = await authorization.refresh(grant, may_be_private=conf.ALLOW_PRIVATE_HTTP)
        except authorization.FailedError as error:
            ended = isinstance(error, authorization.RefusedError)
            _log.warning("access to a server not renewed", server=self._plugin, ended=ended)
            await threads.run(functools.partial(server_sign_ins.fail, found, lease, str(error), ended=ended))
            if ended:
                reason = f"The sign-in at {self._plugin} has ended. {error} {self._way_out}"
                if self._person is None:
                    # Pages and alerts say so at once: perhaps nothing asks for the server's tools for long.
                    record = functools.partial(listings.record_failure, sign_in_needed=True, stderr="")
                    await threads.run(functools.partial(record, self._plugin, error=reason))
                raise live_connection.SignInNeededError(reason) from error
            raise live_connection.UnreachableError(
                f"The access to {self._plugin} could not be renewed. {error}"
            ) from error
        expires = authorization.expiry(renewed.token, clock.now())
        scopes = renewed.token.scope or found.scopes
        store = functools.partial(
            server_sign_ins.renew,
            found,
            lease,
            renewed.model_dump_json(),
            scopes,
            expires,
            was_refused=was_refused,
        )
        await _stored(store, lease)
        self._keep(renewed.token.access_token, _early(clock.now(), expires))

    def _keep(self, token: str, expires: dt.datetime | None) -> None:
        if token != self._token:
            masking.add(token)
            # Tokens that live for minutes would fill the memory.
            masking.discard(self._token)
        self._token, self._expires, self._seen = token, expires, time.monotonic()


async def _stored(store: Callable[[], None], lease: dt.datetime) -> None:
    """Store renewed tokens, until the lease ends: the authorization server takes the old ones no more."""
    while True:
        try:
            return await threads.run(store)
        except db.OperationalError:
            if clock.now() >= lease:
                raise
            await asyncio.sleep(POLL_SECONDS)


def _new_for(refusals: int) -> dt.timedelta:
    """Return how old a refused token must be to be renewed, after this many refusals in a row."""
    # Limits the exponent; the result is limited anyway.
    return min(MAX_NEW, NEW * (1 << min(refusals, 30)))


def _early(renewed: dt.datetime, expires: dt.datetime | None) -> dt.datetime | None:
    """Return when a token is to be renewed."""
    return None if expires is None else expires - min(MAX_EARLY, (expires - renewed) / 10)
