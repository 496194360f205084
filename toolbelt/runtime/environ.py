"""The variables that an upstream server's connection may use.

A name is looked up among the secrets of the server's own namespace, as a plugin's are, and then in the environment.
Toolbelt's own variables, such as the key that signs its sessions, are never available to a server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from toolbelt.core import connections, errors
from toolbelt.runtime import secrets


class Environ(Mapping[str, str]):
    """The server's secrets, and the environment without Toolbelt's own variables. Secrets take precedence.

    An empty namespace has no secrets.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            connections.is_reserved(name) or self._secret(name) is not None or name in os.environ
        )

    def __getitem__(self, name: str) -> str:
        if connections.is_reserved(name):
            raise errors.Refused(
                f"{name} is Toolbelt's own variable and is never passed to a server. Use another variable."
            )
        secret = self._secret(name)
        return secrets.mask_if_secret(os.environ[name]) if secret is None else secrets.mask_always(secret)

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)

    def _secret(self, name: str) -> str | None:
        return secrets.find(self._namespace, name) if self._namespace else None
