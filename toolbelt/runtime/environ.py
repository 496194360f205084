"""Which variables may the connection of an upstream server name, and what do they stand for?

A name is looked up among the secrets of the server's own namespace, as a plugin's are, and then in the environment.
Toolbelt's own variables, the key that signs its sessions among them, are told to no server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from toolbelt.core import errors
from toolbelt.runtime import secrets

# What the product itself is given by the environment: no server is told of it.
OWN_PREFIX = "TOOLBELT_"
OWN = frozenset(
    {
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
        "DATABASE_URL",
        "REDIS_URL",
        "DEMO_PASSWORD",
        "DJANGO_SETTINGS_MODULE",
    }
)


class Environ(Mapping[str, str]):
    """The variables that a connection may name: its server's secrets, else the environment's, but not Toolbelt's.

    An empty namespace has no secrets.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            _is_own(name) or self._secret(name) is not None or name in os.environ
        )

    def __getitem__(self, name: str) -> str:
        if _is_own(name):
            raise errors.Refused(f"{name} is Toolbelt's own: no server is told it. Name another variable.")
        found = self._secret(name)
        return secrets.named(os.environ[name]) if found is None else secrets.handing_out(found)

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)

    def _secret(self, name: str) -> str | None:
        return secrets.find(self._namespace, name) if self._namespace else None


def _is_own(name: str) -> bool:
    return name.startswith(OWN_PREFIX) or name in OWN
