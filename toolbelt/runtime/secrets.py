"""Where does a plugin's secret come from, and who may have it?

From the variable ``TOOLBELT_SECRET_<NAMESPACE>__<KEY>`` (in capitals), else from the file ``<namespace>__<key>`` in
``TOOLBELT_SECRETS_DIR``, else from the plugin's config. A key holds no ``__`` and begins with a letter or digit, so
that no two pairs of namespace and key share a name. A secret is looked up when it is asked for, so that one that was
replaced counts at once, and is kept in no log: :func:`mask` takes those that were handed out from a text.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolbelt import conf
from toolbelt.core import keys
from toolbelt.plugins import contract

PREFIX = "TOOLBELT_SECRET_"
MASK = "[withheld]"
# Shorter ones are too likely to be part of a word.
SHORTEST_MASKED = 6

_KEY = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9.-])*")
_handed_out: set[str] = set()
_lock = threading.Lock()


class Secrets:
    """The secrets of one namespace. An implementation of :class:`contract.Secrets`."""

    def __init__(self, namespace: str, config: Mapping[str, Any]) -> None:
        self._namespace, self._config = namespace, config

    async def retrieve(self, namespace: str, key: str) -> str:
        """Give a secret of the plugin's own namespace, else the value of that key in its config."""
        if namespace != self._namespace:
            raise contract.NamespaceRefused(self._namespace, namespace)
        if not _KEY.fullmatch(key):
            raise contract.SecretMissing(
                namespace, key, "A secret's key is letters and digits, with single _ between."
            )
        for found in (find(namespace, key), self._config.get(key)):
            if found is not None and not isinstance(found, bool | Mapping | list):
                return handing_out(str(found))
        way_out = f"Set {variable(namespace, key)}, or give {key!r} to the plugin's config."
        raise contract.SecretMissing(namespace, key, way_out)


def find(namespace: str, key: str) -> str | None:
    """Give a secret of a namespace from the environment, else from its file; None where neither has it."""
    if not _KEY.fullmatch(key):
        return None
    found = os.environ.get(variable(namespace, key))
    return _in_file(namespace, key) if found is None else found


def variable(namespace: str, key: str) -> str:
    """Name the environment variable of a secret."""
    return f"{PREFIX}{namespace}{keys.SEPARATOR}{key}".upper()


def mask(text: str) -> str:
    """Take every secret that was handed out in this process from a text."""
    with _lock:
        known = sorted(_handed_out, key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, MASK)
    return text


def handing_out(secret: str) -> str:
    """Give the secret, and know it from now on as one that is to be masked."""
    if len(secret) >= SHORTEST_MASKED:
        with _lock:
            _handed_out.add(secret)
    return secret


def _in_file(namespace: str, key: str) -> str | None:
    if not conf.SECRETS_DIR:
        return None
    file = Path(conf.SECRETS_DIR) / f"{namespace}{keys.SEPARATOR}{key}"
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except FileNotFoundError:
        return None
