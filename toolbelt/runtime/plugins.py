"""Which plugins run in this process, and what are they given? One registry, loaded when it is first asked for."""

from __future__ import annotations

import atexit
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.plugins import contract, info, lifecycle, loading
from toolbelt.plugins import registry as registries
from toolbelt.runtime import http, secrets, state, upstreams

# Told of a plugin that was found broken, and of its error; the operators' door listens.
Listener = Callable[[str, str], None]

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loaded: loading.Loaded | None = None
_listener: Listener | None = None


class Runtime:
    """What one plugin is given. An implementation of :class:`contract.RuntimeAPI`."""

    def __init__(self, namespace: str, config: Mapping[str, Any]) -> None:
        self.config: Mapping[str, Any] = dict(config)
        self.secrets: contract.Secrets = secrets.Secrets(namespace, self.config)
        self.state: contract.State = state.State(namespace)
        self.log: contract.Log = structlog.get_logger("toolbelt.plugins").bind(namespace=namespace)
        self._http: httpx.AsyncClient | None = None

    @property
    def http(self) -> contract.Http:
        """The client, made when it is first asked for: that reads certificates."""
        if self._http is None:
            self._http = http.client()
        return self._http

    @property
    def call(self) -> contract.CallContext | None:
        """The call under way; None outside of one."""
        return contract.UNDER_WAY.get()

    async def aclose(self) -> None:
        """Close the client, if there is one."""
        if self._http is not None:
            await self._http.aclose()


def loaded() -> loading.Loaded:
    """Give what was loaded, and what could not be; loaded by the first thread that asks, for all."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def registry() -> registries.ToolPluginRegistry:
    """Give the registry of this process."""
    return loaded().registry


def live() -> Sequence[info.PluginInfo]:
    """Return the plugins that were loaded here, failed ones too; their errors without secrets."""
    return [
        dataclasses.replace(one, error=secrets.mask(one.error)) if one.error else one
        for one in registry().list_plugins()
    ]


def serves(plugin: str, tool: str) -> bool:
    """Say whether the plugin runs here and has the tool."""
    found = registry().resolve_tool(tool) if plugin else None
    return found is not None and found.name == plugin


def report_unserved(plugin: str) -> None:
    """Tell of the plugin, if it is not served because it could not be loaded here."""
    for found in live():
        if found.name == plugin:
            report(plugin, lifecycle.Life(found.state, found.error))


def toolkits(plugin: str) -> Mapping[str, contract.CodeToolkit]:
    """Give the toolkits of a plugin by key; none of one that has failed or does not run here."""
    return {
        toolkit.key: toolkit
        for found in live()
        if found.name == plugin and found.state in ("registered", "initialized")
        for toolkit in found.toolkits
    }


def initialize() -> Sequence[info.PluginInfo]:
    """Initialize every plugin, say how each of them is, and report those that have failed."""
    registry().initialize_sync()
    found = live()
    for plugin in found:
        report(plugin.name, lifecycle.Life(plugin.state, plugin.error))
    return found


def start() -> None:
    """Initialize the plugins beside the server's own start, if the installation wants that."""
    if conf.PLUGIN_INIT == "start":
        threading.Thread(target=_start, name="toolbelt-plugins-start", daemon=True).start()


def stop() -> None:
    """Shut every plugin down, upstream servers too, and forget them: whoever asks next loads them anew."""
    global _loaded
    with _lock:
        was, _loaded = _loaded, None
    try:
        if was is not None:
            was.registry.shutdown_sync()
    finally:
        upstreams.stop()


def tell(listener: Listener | None) -> None:
    """Let ``listener`` be told of each plugin that is found broken."""
    global _listener
    _listener = listener


def report(plugin: str, life: lifecycle.Life) -> None:
    """Tell of a plugin that was found broken; whoever asked goes on, whatever comes of that."""
    if life.state != "failed" or _listener is None:
        return
    try:
        _listener(plugin, secrets.mask(life.error))
    except Exception:
        _log.exception("broken plugin not reported", plugin=plugin)


def _load() -> loading.Loaded:
    limits = registries.Limits(call=conf.CALL_SECONDS)
    found = loading.load(
        Path(conf.PLUGINS_FILE) if conf.PLUGINS_FILE else None,
        into=registries.ToolPluginRegistry(runtime_for=Runtime, limits=limits),
        environ=secrets.Variables(),
    )
    problems = tuple(dataclasses.replace(one, message=secrets.mask(one.message)) for one in found.problems)
    for problem in problems:
        _log.error("plugin not loaded", problem=str(problem))
    return dataclasses.replace(found, problems=problems)


def _start() -> None:
    try:
        initialize()
    except Exception:
        _log.exception("plugins not initialized")
    finally:
        connections.close_all()


# The last resort: by then a plugin can start no thread any more, so whoever can should stop them earlier.
atexit.register(stop)
