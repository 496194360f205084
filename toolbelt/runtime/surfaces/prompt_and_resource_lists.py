"""The prompts, resources and resource templates in an MCP client's lists. They are cached with its tool list."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, limits, prompts_and_resources, schema
from toolbelt.core.rules import budgets

PAGE_SIZE = limits.MCP_PAGE_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class NonToolList:
    """The entries of one kind in MCP's form, ordered by key. ``digest`` identifies the list's content.

    ``size`` is their length as JSON, in bytes.
    """

    keys: tuple[str, ...] = ()
    documents: tuple[Mapping[str, Any], ...] = ()
    size: int = 0
    digest: str = hashlib.sha256(b"").hexdigest()[:8]

    def page(self, after: str | None) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """Return the entries after this key (None: the first page), and the page's last key if there are more."""
        start = 0 if after is None else bisect.bisect_right(self.keys, after)
        end = start + PAGE_SIZE
        return self.documents[start:end], self.keys[end - 1] if end < len(self.keys) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NonToolLists:
    """The lists of one agent and session."""

    prompts: NonToolList = NonToolList()
    resources: NonToolList = NonToolList()
    templates: NonToolList = NonToolList()

    @property
    def resources_digest(self) -> str:
        """Return the digest of its resources and templates."""
        text = f"{self.resources.digest}{self.templates.digest}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def size(self) -> int:
        """Return the size in bytes, for the cache."""
        return self.prompts.size + self.resources.size + self.templates.size


EMPTY = NonToolLists()


def of(resolved: budgets.Resolution) -> NonToolLists:
    """Return the lists of the active prompts and resources."""
    if not resolved.non_tools:
        return EMPTY
    return NonToolLists(
        prompts=_list(resolved, "prompt"),
        resources=_list(resolved, "resource"),
        templates=_list(resolved, "template"),
    )


def _list(resolved: budgets.Resolution, kind: catalog.Kind) -> NonToolList:
    stored = resolved.context.catalog
    active = prompts_and_resources.list_active(resolved, kind)
    documents = tuple(prompts_and_resources.document(stored, tool) for tool in active)
    encoded = schema.canonical(documents).encode() if documents else b""
    return NonToolList(
        keys=tuple(tool.key for tool in active),
        documents=documents,
        size=len(encoded),
        digest=hashlib.sha256(encoded).hexdigest()[:8],
    )
