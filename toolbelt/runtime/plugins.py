"""The plugins of this process, and the runtime that each receives. The registry is loaded at its first use."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from django.db import connections
from django.utils import module_loading

from toolbelt import conf
from toolbelt.plugins import contract, info, lifecycle, loading
from toolbelt.plugins import registry as registries
from toolbelt.runtime import demo_plugins, plugin_state, secrets
from toolbelt.runtime.operators import OPERATORS
from toolbelt.runtime.upstream import process_connections

if TYPE_CHECKING:
    import httpx

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loaded: loading.Loaded | None = None


class Runtime:
    """The runtime of one plugin. Implements :class:`contract.RuntimeAPI`."""

    def __init__(self, namespace: str, config: Mapping[str, Any]) -> None:
        self.config: Mapping[str, Any] = dict(config)
        self.secrets: contract.Secrets = secrets.Secrets(namespace, self.config)
        self.state: contract.State = plugin_state.State(namespace)
        self.log: contract.Log = structlog.get_logger("toolbelt.plugins").bind(namespace=namespace)
        self._namespace = namespace
        self._http: httpx.AsyncClient | None = None

    @functools.cached_property
    def wallet(self) -> contract.Wallet:
        """The installation's wallet for this plugin, created when it is first asked for."""
        if not conf.WALLET:
            raise contract.WalletMissing
        wallet: contract.Wallet = module_loading.import_string(conf.WALLET.replace(":", "."))(self._namespace)
        return wallet

    @property
    def http(self) -> contract.Http:
        """The client, created at first use because that reads certificates."""
        if self._http is None:
            # Imported here: a process that calls no plugin needs no client.
            from toolbelt.runtime import http

            self._http = http.client()
        return self._http

    @property
    def call(self) -> contract.CallContext | None:
        """The current call, or None outside of a call."""
        return contract.CURRENT_CALL.get()

    async def aclose(self) -> None:
        """Close the client, if it was created."""
        if self._http is not None:
            await self._http.aclose()


def loaded(*, logs: bool = True) -> loading.Loaded:
    """Return the loaded plugins and the problems, which are logged. The first caller loads them for all threads.

    Without ``logs``, the caller prints the problems itself.
    """
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load(logs)
    return _loaded


def registry() -> registries.ToolPluginRegistry:
    """Return the registry of this process."""
    return loaded().registry


def live() -> Sequence[info.PluginInfo]:
    """Return this process's plugins, including failed ones, with secrets masked in their errors."""
    return [
        dataclasses.replace(plugin, error=secrets.mask(plugin.error)) if plugin.error else plugin
        for plugin in registry().list_plugins()
    ]


def serves(plugin: str, tool: str) -> bool:
    """Return whether the plugin runs here and has the tool."""
    owner = registry().resolve_tool(tool) if plugin else None
    return owner is not None and owner.name == plugin


def runnable() -> frozenset[str]:
    """Return the tools whose code is loaded here, also of a plugin that has failed. Loads the plugins."""
    return frozenset(tool.name for plugin in registry().list_plugins() for tool in plugin.tools)


def is_loaded(plugin: str) -> bool:
    """Return whether code of this name was loaded here, also if it has failed since."""
    return any(loaded.name == plugin for loaded in registry().list_plugins())


def namespace(plugin: str) -> str:
    """Return the namespace of a loaded plugin's secrets: its own, or its name; empty if it is not loaded here."""
    return next((it.namespace or it.name for it in registry().list_plugins() if it.name == plugin), "")


def report_unserved(plugin: str) -> None:
    """Report the plugin, if it is not served because it could not be loaded here."""
    for loaded_plugin in live():
        if loaded_plugin.name == plugin:
            report(plugin, lifecycle.Status(loaded_plugin.state, loaded_plugin.error))


def toolkits(plugin: str) -> Mapping[str, contract.CodeToolkit]:
    """Return a plugin's toolkits by key; empty if it has failed or does not run here."""
    return {
        toolkit.key: toolkit
        for loaded_plugin in live()
        if loaded_plugin.name == plugin and loaded_plugin.state in ("registered", "initialized")
        for toolkit in loaded_plugin.toolkits
    }


def initialize() -> Sequence[info.PluginInfo]:
    """Initialize every plugin, report those that have failed, and return them all."""
    registry().initialize_sync()
    plugins = live()
    for plugin in plugins:
        report(plugin.name, lifecycle.Status(plugin.state, plugin.error))
    return plugins


def start() -> None:
    """Initialize the plugins in a thread, if the settings say so. Servers call this when they start."""
    if conf.PLUGIN_INIT == "start":
        threading.Thread(target=_start, name="toolbelt-plugins-start", daemon=True).start()


def stop() -> None:
    """Shut down every plugin, including upstream servers. The next use loads the plugins again."""
    global _loaded
    with _lock:
        previous, _loaded = _loaded, None
    try:
        if previous is not None:
            previous.registry.shutdown_sync()
    finally:
        process_connections.stop()


def report(plugin: str, status: lifecycle.Status) -> None:
    """Report a plugin that has failed. Never raises."""
    if status.state != "failed" or OPERATORS.record_failure is None:
        return
    try:
        OPERATORS.record_failure(plugin, secrets.mask(status.error))
    except Exception:
        _log.exception("broken plugin not reported", plugin=plugin)


def file() -> Path | None:
    """Return the file that lists the plugins; None if there is none."""
    return Path(conf.PLUGINS_FILE) if conf.PLUGINS_FILE else demo_plugins.file()


def _load(logs: bool) -> loading.Loaded:
    limits = registries.Limits(call=conf.CALL_SECONDS)
    result = loading.load(
        file(),
        into=registries.ToolPluginRegistry(runtime_for=Runtime, limits=limits),
        environ=secrets.Variables(),
    )
    problems = tuple(
        dataclasses.replace(problem, message=secrets.mask(problem.message)) for problem in result.problems
    )
    for problem in problems if logs else ():
        _log.error("plugin not loaded", problem=str(problem))
    return dataclasses.replace(result, problems=problems)


def _start() -> None:
    try:
        initialize()
    except Exception:
        _log.exception("plugins not initialized")
    finally:
        connections.close_all()


# A last resort: servers stop plugins earlier, because no thread can be started at exit.
atexit.register(stop)
