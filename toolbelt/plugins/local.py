"""A plugin runtime without a server, for tests, shells and standalone registries.

State is kept in memory only, and HTTP requests are not restricted; a server's runtime does both properly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog

from toolbelt.plugins import contract

if TYPE_CHECKING:
    import httpx

HTTP_TIMEOUT = 30.0


class LocalRuntime:
    """An in-memory :class:`contract.RuntimeAPI`. Tests may pass their own ``http`` client and ``wallet``."""

    def __init__(
        self,
        namespace: str,
        config: Mapping[str, Any] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        http: contract.Http | None = None,
        wallet: contract.Wallet | None = None,
    ) -> None:
        self.config: Mapping[str, Any] = dict(config or {})
        self.secrets: contract.Secrets = LocalSecrets(namespace, {**self.config, **(secrets or {})})
        self.state: contract.State = LocalState()
        self.log: contract.Log = structlog.get_logger("toolbelt.plugins", namespace=namespace)
        self._wallet = wallet
        self._http = http
        self._own_http: httpx.AsyncClient | None = None

    @property
    def http(self) -> contract.Http:
        """The given client, or else one that is created at first use, because creating it takes a while."""
        if self._http is None:
            import httpx  # late, because importing it takes a while as well

            self._http = self._own_http = httpx.AsyncClient(timeout=HTTP_TIMEOUT)
        return self._http

    @property
    def wallet(self) -> contract.Wallet:
        """The given wallet."""
        if self._wallet is None:
            raise contract.WalletMissing
        return self._wallet

    @property
    def call(self) -> contract.CallContext | None:
        """The current call."""
        return contract.CURRENT_CALL.get()

    async def aclose(self) -> None:
        """Close the client if it was created here."""
        if self._own_http is not None:
            await self._own_http.aclose()


class LocalSecrets:
    """Secrets from a mapping, for one namespace."""

    def __init__(self, namespace: str, values: Mapping[str, Any]) -> None:
        self._namespace, self._values = namespace, values

    async def retrieve(self, namespace: str, key: str) -> str:
        """Return the value of the key. A number, such as an unquoted one in YAML, is converted to text."""
        if namespace != self._namespace:
            raise contract.NamespaceRefused(self._namespace, namespace)
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise contract.SecretMissing(namespace, key)
        return str(value)


class LocalState:
    """JSON values in memory, stored as text so that returned values are never shared."""

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
