"""What is a plugin given where there is no server? In a test, in a shell, in a registry on its own.

State is kept in memory and gone with it, and HTTP goes wherever it is sent: a server's runtime guards both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import structlog

from toolbelt.plugins import contract

HTTP_TIMEOUT = 30.0


class LocalRuntime:
    """A :class:`contract.RuntimeAPI` in memory; ``http`` may be a client of the test's own."""

    def __init__(
        self,
        namespace: str,
        config: Mapping[str, Any] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        http: contract.Http | None = None,
    ) -> None:
        self.config: Mapping[str, Any] = dict(config or {})
        self.secrets: contract.Secrets = LocalSecrets(namespace, {**self.config, **(secrets or {})})
        self.state: contract.State = LocalState()
        self.log: contract.Log = structlog.get_logger("toolbelt.plugins", namespace=namespace)
        self._http = http
        self._own_http: httpx.AsyncClient | None = None

    @property
    def http(self) -> contract.Http:
        """The client that was given, else one of its own, made when it is first asked for: that takes a while."""
        if self._http is None:
            self._http = self._own_http = httpx.AsyncClient(timeout=HTTP_TIMEOUT)
        return self._http

    @property
    def call(self) -> contract.CallContext | None:
        """The call under way."""
        return contract.UNDER_WAY.get()

    async def aclose(self) -> None:
        """Close the client that was made here."""
        if self._own_http is not None:
            await self._own_http.aclose()


class LocalSecrets:
    """Secrets out of a mapping, for one namespace."""

    def __init__(self, namespace: str, values: Mapping[str, Any]) -> None:
        self._namespace, self._values = namespace, values

    async def retrieve(self, namespace: str, key: str) -> str:
        """Give the value of the key; a number, as YAML reads one that is not quoted, counts as text."""
        if namespace != self._namespace:
            raise contract.NamespaceRefused(self._namespace, namespace)
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise contract.SecretMissing(namespace, key)
        return str(value)


class LocalState:
    """JSON values in memory; kept as text, so that a value taken out is nobody else's."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self._texts[key]) if key in self._texts else default

    async def set(self, key: str, value: Any) -> None:
        self._texts[key] = json.dumps(value)

    async def delete(self, key: str) -> bool:
        return self._texts.pop(key, None) is not None

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        return {key: json.loads(text) for key, text in sorted(self._texts.items()) if key.startswith(prefix)}
