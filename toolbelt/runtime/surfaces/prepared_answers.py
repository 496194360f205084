"""The answers to requests for surfaces, cached as bytes.

One probe of the database reads the token and the state of agent, catalog and session. If the surface of that state is
cached, so are its bytes. Otherwise it is computed in a thread (by :func:`answer`, which Django's view calls as well),
and the next request for it finds it cached.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolbelt.core import directives, errors, policy, request_key, surface
from toolbelt.core.rules import resolution
from toolbelt.formats import profiles
from toolbelt.runtime import availability, credentials, surfaces, threads
from toolbelt.runtime.records import context_use, conversation_records
from toolbelt.runtime.surfaces import appending, byte_cache, documents, request_contexts, surface_template
from toolbelt.store import state_probe

# The size of the cache. The answer of an agent with thirty tools has about 30,000 bytes.
MAX_BYTES = 64 << 20
# Longer messages are matched in a thread, because they would hold up the event loop.
MAX_MESSAGE_LENGTH = 10_000

Members = Mapping[str, Sequence[str]]
Headers = list[tuple[bytes, bytes]]

_VARY = (b"vary", b"Authorization")
_STALE = (b"toolbelt-stale", b"true")


class SurfaceRequest(NamedTuple):
    """A well-formed request for a surface, with a ``token`` if that is not checked yet.

    `surfaces.ask` and `documents.of` describe the other fields.
    """

    key: request_key.RequestKey
    token: str = ""
    form: str | None = None
    message: str | None = None
    declared: Mapping[str, str] | None = None
    model: str | None = None
    conversation: appending.Conversation | None = None

    @property
    def rendered_form(self) -> str | None:
        """Return the format of the document's ``provider``: none with a conversation, which has ``append``."""
        return None if self.conversation is not None else self.form


class SurfaceAnswer(NamedTuple):
    """An answer, its bearer and its ETag. The bytes are assembled when they are needed.

    ``is_stale``: this is the last known answer, because the database is unavailable. ``append`` is what the request's
    conversation must be told, if it has one.
    """

    bearer: credentials.Bearer
    request: SurfaceRequest
    revision: int
    template: surface_template.SurfaceTemplate
    is_stale: bool = False
    append: Mapping[str, Any] | None = None

    @property
    def etag(self) -> str:
        """Return the ETag, including its quotes."""
        return self.template.etag

    def headers(self, status: int) -> Headers:
        """Return the headers for the content and its caching."""
        if self.is_stale and status == 200:
            # A client that cached it would later take it for the current state.
            return [_VARY, (b"cache-control", b"private, no-store"), _STALE]
        # A flip takes effect immediately, so clients must revalidate what they cached.
        headers = [_VARY, (b"cache-control", b"private, no-cache"), (b"etag", self.etag.encode())]
        return [*headers, _STALE] if self.is_stale else headers

    def body(self) -> bytes:
        """Return the surface's document."""
        request = self.request
        return self.template.render(
            request_id=request.key.request_id,
            revision=self.revision,
            session=request.key.session,
            declared=request.declared,
            is_stale=self.is_stale,
            append=self.append,
        )


class PreparedAnswers:
    """The answers that this process has cached. For one event loop."""

    def __init__(self, probe: state_probe.StateProbe) -> None:
        self.contexts = request_contexts.RequestContexts(probe)
        self._templates: byte_cache.ByteCache[surface_template.SurfaceTemplate] = byte_cache.ByteCache(
            MAX_BYTES
        )

    async def ask(
        self, request: SurfaceRequest, may_ask: Callable[[credentials.Bearer], bool]
    ) -> SurfaceAnswer | None:
        """Return the answer: from the cache, or else computed in a thread if ``may_ask`` allows its bearer.

        Return None if the database is unavailable and no last answer is known. Raise errors.ToolbeltError, for example
        for a token that does not allow the request.
        """
        if (cached := await self.cached(request)) is not None:
            return cached
        compute = functools.partial(threads.run, _answer_to_sender, request, may_ask)
        if not self.contexts.is_offline:
            return await compute()
        last = await self.last_known(request)
        return None if last is None else await self.contexts.try_database(compute) or last

    async def cached(self, request: SurfaceRequest) -> SurfaceAnswer | None:
        """Return the answer, if it is cached and the token is valid for it. Uses one query."""
        context = await self.contexts.of(request.token, request.key)
        if context is None or context.bearer.is_client:
            return None
        template = await self._template(request, context)
        if template is None:
            return None
        append: Mapping[str, Any] | None = None
        if request.conversation is not None:
            shown = surfaces.cached(context.snapshot, context.cache_key[1])
            # A focus is not in the cached surface.
            if shown is None or template.has_focus:
                return None
            append = documents.unchanged(
                shown, request.conversation, template.declared, request.form, request.model
            )
            if append is None:
                try:
                    append = await asyncio.to_thread(_append, shown, request, template.declared)
                except errors.ToolbeltError:
                    # The fallback raises the error.
                    return None
            _record(request, append)
        context_use.add(request.key.agent, template.tokens)
        number = context.probed.state.number
        return SurfaceAnswer(context.bearer, request, number, template, append=append)

    async def last_known(self, request: SurfaceRequest) -> SurfaceAnswer | None:
        """Return the last known answer, marked as stale, if the database is unavailable and there is one."""
        context = self.contexts.last_known(request.token, request.key) if self.contexts.is_offline else None
        if context is None or context.bearer.is_client:
            return None
        # A grant may have expired since the last probe, which makes it another surface that may not be cached yet.
        stamp = context.probed.state.agent_stamp
        built = await asyncio.to_thread(surfaces.get_or_build, context.snapshot, stamp)
        template = await self._template(request, context)
        if template is None:
            return None
        append = await asyncio.to_thread(_append_last_known, built, context.snapshot, request, template)
        number = context.probed.state.number
        return SurfaceAnswer(context.bearer, request, number, template, is_stale=True, append=append)

    async def close(self) -> None:
        """Close the probe's connection."""
        await self.contexts.close()

    async def _template(
        self, request: SurfaceRequest, context: request_contexts.RequestContext
    ) -> surface_template.SurfaceTemplate | None:
        snapshot = context.snapshot
        cached_surface, focus = None, None
        if request.message is not None and request.message.strip():
            cached_surface = surfaces.cached(snapshot, context.cache_key[1])
            if cached_surface is None or len(request.message) > MAX_MESSAGE_LENGTH:
                return None
            members = self._members(context, cached_surface)
            if members is None:
                return None
            focus = directives.build(snapshot.catalog, members, cached_surface.because, request.message)
        # Only the form of a focus, and a warning, depend on the model.
        profile = _profile(request, snapshot) if request.rendered_form else profiles.UNKNOWN
        said = focus and (focus.active_tools, focus.tool_choice, profile.name)
        cache_key = (context.cache_key, request.rendered_form, said, profile.binds_thinking)
        if (template := self._templates.get(cache_key)) is not None:
            return template
        cached_surface = cached_surface or surfaces.cached(snapshot, context.cache_key[1])
        if cached_surface is None:
            return None
        try:
            message = request.message if focus else None
            compute = functools.partial(_build, cached_surface, snapshot, message, request)
            return await self._templates.get_or_compute(cache_key, compute)
        except errors.ToolbeltError:
            # The format does not support it: the fallback raises the error.
            return None

    def _members(
        self, context: request_contexts.RequestContext, cached_surface: surface.Surface
    ) -> Members | None:
        """Return the active members of each toolkit that may respond to a message.

        None if that would call a plugin's code, which may be slow.
        """
        stored = context.snapshot.catalog
        derived = self.contexts.derived
        if context.cache_key not in derived:
            members = policy.active_members(stored, cached_surface.because)
            has_code = any(stored.toolkits[key].plugin for key in members)
            derived[context.cache_key] = None if has_code else members
        cached_members: Members | None = derived[context.cache_key]
        return cached_members


def answers() -> PreparedAnswers | None:
    """Return the cache for this installation; None if only Django can read its database."""
    probe = state_probe.open_probe()
    return None if probe is None else PreparedAnswers(probe)


def answer(bearer: credentials.Bearer, request: SurfaceRequest) -> SurfaceAnswer:
    """Compute the answer for a bearer who may ask for this agent. Raise errors.ToolbeltError."""
    request_contexts.check_subagent(bearer, request.key)
    built = surfaces.of(request.key, request.message)
    template = _template(built, request)
    append = _append(built, request, template.declared)
    _record(request, append)
    context_use.add(request.key.agent, template.tokens)
    return SurfaceAnswer(bearer, request, built.revision, template, append=append)


@availability.raised_as_unavailable()
def _answer_to_sender(
    request: SurfaceRequest, may_ask: Callable[[credentials.Bearer], bool]
) -> SurfaceAnswer:
    bearer = credentials.recognize(request.token)
    if (
        bearer is None
        or bearer.is_client
        or bearer.agent not in ("", request.key.agent)
        or not may_ask(bearer)
    ):
        raise errors.Refused("This token does not allow this request.")
    return answer(bearer, request)


def _append(
    built: surface.Surface, request: SurfaceRequest, hashes: Mapping[str, str]
) -> Mapping[str, Any] | None:
    if request.conversation is None:
        return None
    return documents.append(built, request.conversation, hashes, request.form, request.model)


def _append_last_known(
    built: surface.Surface,
    snapshot: resolution.Snapshot,
    request: SurfaceRequest,
    template: surface_template.SurfaceTemplate,
) -> Mapping[str, Any] | None:
    """Return what the conversation must be told, with the focus of the message, which no cached surface has."""
    if template.has_focus and request.conversation is not None:
        built = surface.of(built.resolution, snapshot, request.message)
    return _append(built, request, template.declared)


def _record(request: SurfaceRequest, append: Mapping[str, Any] | None) -> None:
    """Record what the conversation of a request is told, or that it is still there."""
    if request.conversation is None or append is None:
        return
    if not conversation_records.is_due(request.key, append["token"]):
        return
    point = appending.point(request.key.agent, request.conversation, append)
    if point is not None:
        conversation_records.note(request.key, point, append["changes"], append["tokens"])


def _profile(request: SurfaceRequest, snapshot: resolution.Snapshot) -> profiles.Profile:
    model = snapshot.agent.model if request.model is None else request.model
    return profiles.of(model, request.form or "")


def _build(
    cached_surface: surface.Surface,
    snapshot: resolution.Snapshot,
    message: str | None,
    request: SurfaceRequest,
) -> surface_template.SurfaceTemplate:
    built = cached_surface if message is None else surface.of(cached_surface.resolution, snapshot, message)
    return _template(built, request)


def _template(built: surface.Surface, request: SurfaceRequest) -> surface_template.SurfaceTemplate:
    form, model = request.rendered_form, request.model
    document, fingerprint = documents.of(built, form, None, model), documents.fingerprint(built, form, model)
    template = surface_template.split(document, f'"{fingerprint}"')
    has_focus = built.directive is not None
    return dataclasses.replace(template, tokens=context_use.count(built), has_focus=has_focus)
