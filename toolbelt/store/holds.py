"""Emergency stops that could not be stored: they hold in this process, and are stored as soon as that is possible.

A database that is full or locked can still be read, so calls run, and an operator must be able to stop them.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from django import db

from toolbelt.core import catalog
from toolbelt.store import clock

# How often storing is tried again, in seconds.
RETRY_SECONDS = 2.0
KINDS = ("tool", "plugin", "toolkit")

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
# How each stop is stored, and when it ends (None: never), by its kind and key.
_held: dict[tuple[str, str], tuple[Callable[[], object], dt.datetime | None]] = {}
_listeners: set[Callable[[], object]] = set()
_over = threading.Event()


def add(
    kind: str,
    key: str,
    store: Callable[[], object],
    retry_seconds: float = RETRY_SECONDS,
    *,
    ends: dt.datetime | None = None,
) -> None:
    """Hold a stop in this process until it ``ends``, and call ``store`` in a thread until it raises no error of the
    database.
    """
    with _lock:
        is_first = not _held
        _held[kind, key] = store, ends
        listeners = [*_listeners]
    _log.warning("emergency stop not stored: it holds in this process only", kind=kind, key=key)
    if is_first:
        _over.clear()
        threading.Thread(
            target=_keep_storing, args=[retry_seconds], name="toolbelt-holds", daemon=True
        ).start()
    for notify in listeners:
        notify()


def release(kind: str, key: str) -> None:
    """End a hold: the stop was stored, or is no longer wanted."""
    with _lock:
        _held.pop((kind, key), None)
        if not _held:
            _over.set()


def any_held() -> bool:
    """Return whether this process holds a stop."""
    return bool(_held)


def is_stopped(stored: catalog.Catalog, key: str) -> bool:
    """Return whether a stop over this tool is held."""
    if not _held or (tool := stored.tools.get(key)) is None:
        return False
    return (
        _is_held("tool", key)
        or _is_held("plugin", tool.plugin)
        or any(_is_held("toolkit", toolkit.key) for toolkit in stored.toolkits_of.get(key, ()))
    )


def _is_held(kind: str, key: str) -> bool:
    held = _held.get((kind, key))
    return held is not None and (held[1] is None or held[1] > clock.now())


@contextmanager
def notifying(notify: Callable[[], object]) -> Iterator[None]:
    """Call ``notify``, in any thread, for each stop that is held from now on."""
    with _lock:
        _listeners.add(notify)
    try:
        yield
    finally:
        with _lock:
            _listeners.discard(notify)


def forget() -> None:
    """End all holds without storing them, for tests."""
    with _lock:
        _held.clear()
        _over.set()


def _keep_storing(retry_seconds: float) -> None:
    while not _over.wait(retry_seconds):
        store_all()


def store_all() -> None:
    """Try once to store what is held."""
    with _lock:
        held = [*_held.items()]
    try:
        for (kind, key), (store, _) in held:
            try:
                store()
            except db.Error:
                continue
            except Exception:
                # It stays held, because no one has withdrawn it.
                _log.exception("emergency stop cannot be stored", kind=kind, key=key)
                continue
            release(kind, key)
            _log.warning("emergency stop stored", kind=kind, key=key)
    finally:
        db.connections.close_all()
