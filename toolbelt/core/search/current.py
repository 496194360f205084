"""Which index answers: a catalog's own, or an older one while its own is built in the background.

A small catalog is indexed at once. A large one takes seconds, so a thread does it. Until it is done, the newest index
of this process answers for the tools that it has.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping

from toolbelt.core import catalog, declared_versions
from toolbelt.core.search import sentences, tool_index

# A catalog of at most this many entries is indexed at once.
SMALL = 300
_SLOT = "search index"
_Texts = Mapping[str, Hashable]

_lock = threading.Lock()
_newest: tuple[_Texts, tool_index.Index] | None = None
_waiting: tuple[catalog.Catalog, _Texts] | None = None
_builder: threading.Thread | None = None


def of(stored: catalog.Catalog) -> tool_index.Index:
    """Return the catalog's own index; build it now if it does not exist yet."""
    index: tool_index.Index | None = stored.derived.get(_SLOT)
    return index or _build(stored, _texts(stored))


def ready(stored: catalog.Catalog) -> tool_index.Index | None:
    """Return the catalog's own index, or an older one while it is being built; None if there is none yet."""
    index: tool_index.Index | None = stored.derived.get(_SLOT)
    if index is not None:
        return index
    texts = _texts(stored)
    newest = _newest
    if newest is not None and newest[0] == texts:
        # The catalog changed, but nothing of what is searched: a tool was blocked, for example.
        stored.derived[_SLOT] = newest[1]
        return newest[1]
    if len(stored.tools) <= SMALL:
        return _build(stored, texts)
    _build_later(stored, texts)
    return newest[1] if newest is not None else None


def wait() -> None:
    """Wait until no index is being built. For tests and measurements."""
    if (builder := _builder) is not None:
        builder.join()


def _build(stored: catalog.Catalog, texts: _Texts) -> tool_index.Index:
    global _newest
    built = stored.derived[_SLOT] = tool_index.of(stored)
    _newest = texts, built
    sentences.prepare_later(built)
    return built


def _build_later(stored: catalog.Catalog, texts: _Texts) -> None:
    """Have the index built by the thread, after the one that it is building."""
    global _waiting, _builder
    with _lock:
        _waiting = stored, texts
        if _builder is None or not _builder.is_alive():
            _builder = threading.Thread(target=_build_waiting, name="search index", daemon=True)
            _builder.start()


def _build_waiting() -> None:
    global _waiting, _builder
    while True:
        with _lock:
            job, _waiting = _waiting, None
            if job is None:
                _builder = None
                return
        if _SLOT not in job[0].derived:
            _build(*job)


def _texts(stored: catalog.Catalog) -> _Texts:
    """Return everything of a catalog that an index depends on."""
    return {
        key: (
            tool.title,
            tool.description,
            tool.upstream_name,
            tool.input_schema,
            stored.category(tool),
            _plugin(stored.plugins.get(tool.plugin)),
            tuple((kit.key, kit.title, kit.description) for kit in stored.toolkits_of.get(key, ())),
        )
        for key, tool in ((key, declared_versions.offered(tool)) for key, tool in stored.tools.items())
        if key not in stored.non_tools
    }


def _plugin(plugin: catalog.Plugin | None) -> Hashable:
    return (plugin.name, plugin.namespace, plugin.title, plugin.description) if plugin else None
