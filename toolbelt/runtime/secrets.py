"""The secrets of plugins and upstream servers.

A secret comes from the variable ``TOOLBELT_SECRET_<NAMESPACE>__<KEY>`` (in capitals), else from the file
``<namespace>__<key>`` in ``TOOLBELT_SECRETS_DIR``, else from the plugin's config. A key contains no ``__`` and begins
with a letter or digit, so no two pairs of namespace and key share a name. A secret is read each time it is requested,
so a replaced one takes effect immediately. Every secret that is returned here is masked from then on
(:mod:`toolbelt.runtime.masking`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolbelt import conf
from toolbelt.core import keys
from toolbelt.plugins import contract
from toolbelt.runtime import masking

PREFIX = "TOOLBELT_SECRET_"
MASK = masking.MASK

_KEY = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9.-])*")
# An address without anything that could be a secret: a user, a query, or a long part of the path.
_PLAIN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^@?#\s/]+(?:/[^@?#\s/]{0,15})*", re.IGNORECASE)


class Secrets:
    """The secrets of one namespace. Implements :class:`contract.Secrets`."""

    def __init__(self, namespace: str, config: Mapping[str, Any]) -> None:
        self._namespace, self._config = namespace, config

    async def retrieve(self, namespace: str, key: str) -> str:
        """Return a secret of the plugin's own namespace, or else the value of that key in its config."""
        if namespace != self._namespace:
            raise contract.NamespaceRefused(self._namespace, namespace)
        if not _KEY.fullmatch(key):
            raise contract.SecretMissing(
                namespace,
                key,
                "A secret's key consists of letters and digits, separated by single underscores.",
            )
        for value in (find(namespace, key), self._config.get(key)):
            if value is not None and not isinstance(value, bool | Mapping | list):
                return mask_always(str(value))
        way_out = f"Set {variable(namespace, key)}, or add {key!r} to the plugin's config."
        raise contract.SecretMissing(namespace, key, way_out)


def find(namespace: str, key: str) -> str | None:
    """Return a secret from the environment, or else from its file; None if neither has it."""
    if not _KEY.fullmatch(key):
        return None
    value = os.environ.get(variable(namespace, key))
    return _read_file(namespace, key) if value is None else value


def variable(namespace: str, key: str) -> str:
    """Return the name of the environment variable of a secret."""
    return f"{PREFIX}{namespace}{keys.SEPARATOR}{key}".upper()


mask = masking.mask


def mask_always(secret: str) -> str:
    """Return the secret, which is masked from now on."""
    masking.add(secret)
    return secret


class Variables(Mapping[str, str]):
    """The environment for ``${NAME}`` in configuration. Each value that is read is masked from then on.

    Plain addresses and existing paths are not masked: they say where something is.
    """

    def __getitem__(self, name: str) -> str:
        return mask_if_secret(os.environ[name])

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def mask_if_secret(value: str) -> str:
    """Return the value of a variable, which is masked from now on if it may be a secret."""
    if not _PLAIN_URL.fullmatch(value) and not _is_path(value):
        masking.add(value)
    return value


def _is_path(value: str) -> bool:
    try:
        return value.startswith(("/", "./", "../", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _read_file(namespace: str, key: str) -> str | None:
    if not conf.SECRETS_DIR:
        return None
    file = Path(conf.SECRETS_DIR) / f"{namespace}{keys.SEPARATOR}{key}"
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except FileNotFoundError:
        return None
