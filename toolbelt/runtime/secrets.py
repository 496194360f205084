"""Where does a plugin's secret come from, and who may have it?

From the variable ``TOOLBELT_SECRET_<NAMESPACE>__<KEY>`` (in capitals), else from the file ``<namespace>__<key>`` in
``TOOLBELT_SECRETS_DIR``, else from the plugin's config. A key holds no ``__`` and begins with a letter or digit, so
that no two pairs of namespace and key share a name. A secret is looked up when it is asked for, so that one that was
replaced counts at once, and is kept in no log: whatever is handed out here is masked from then on
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
# An address with nothing in it that could be a secret: a user, a query, or a long part of the path.
_PLAIN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^@?#\s/]+(?:/[^@?#\s/]{0,15})*", re.IGNORECASE)


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


mask = masking.mask


def handing_out(secret: str) -> str:
    """Give the secret, and know it from now on as one that is to be masked."""
    masking.add(secret)
    return secret


class Variables(Mapping[str, str]):
    """The environment, as configuration names it by ``${NAME}``: each value that is read is masked from then on.

    An address without a secret in it, and a path that is there, are named to say where something is; those are not.
    """

    def __getitem__(self, name: str) -> str:
        return named(os.environ[name])

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def named(value: str) -> str:
    """Return the value of a variable that configuration names; masked from then on, if it may be a secret."""
    if not _PLAIN_URL.fullmatch(value) and not _is_path(value):
        masking.add(value)
    return value


def _is_path(value: str) -> bool:
    try:
        return value.startswith(("/", "./", "../", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _in_file(namespace: str, key: str) -> str | None:
    if not conf.SECRETS_DIR:
        return None
    file = Path(conf.SECRETS_DIR) / f"{namespace}{keys.SEPARATOR}{key}"
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except FileNotFoundError:
        return None
