"""The variables that an upstream server's connection, and the options of a tool, may use.

A name is looked up among the secrets of the server's or plugin's own namespace, and then in the environment. Toolbelt's
own variables, such as the key that signs its sessions, are never available.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import connections, errors, variables
from toolbelt.runtime import secrets


class OptionUnset(errors.ToolbeltError):
    """An option refers to a variable that is not set, or that options may not use. An operator can fix this."""

    code = "tool-unavailable"

    def __init__(self, tool: str, variable: str, namespace: str) -> None:
        ways = (
            f"allow it in TOOLBELT_WEB_VARIABLES and set it, or set {secrets.variable(namespace, variable)}"
        )
        super().__init__(
            f"An option of {tool} refers to the variable {variable}, which it cannot use: {ways}."
        )


def fill_options(options: Mapping[str, Any], tool: str, namespace: Callable[[], str]) -> Mapping[str, Any]:
    """Return the options of a call with each reference to a variable, ``${NAME}``, replaced by its value.

    Anyone who edits options could name a variable, so that only the secrets of the plugin's own namespace are
    available, and what TOOLBELT_WEB_VARIABLES allows in addresses. Raise OptionUnset for any other. ``namespace`` is
    only called if there is a reference.
    """
    return {key: _filled(value, tool, namespace) for key, value in options.items()}


def _filled(value: Any, tool: str, namespace: Callable[[], str]) -> Any:
    match value:
        case str() if "${" in value:
            return variables.replaced(
                value, lambda name, default: _option_variable(name, default, tool, namespace())
            )
        case Mapping():
            return {key: _filled(item, tool, namespace) for key, item in value.items()}
        case list() | tuple():
            return [_filled(item, tool, namespace) for item in value]
    return value


def _option_variable(name: str, default: str | None, tool: str, namespace: str) -> str:
    secret = secrets.find(namespace, name) if namespace else None
    if secret is not None:
        return secrets.mask_always(secret)
    is_allowed = not connections.is_reserved(name) and connections.is_listed(name, conf.WEB_VARIABLES)
    if default is not None and (not is_allowed or not os.environ.get(name)):
        return default
    if not is_allowed or name not in os.environ:
        raise OptionUnset(tool, name, namespace)
    return secrets.mask_if_secret(os.environ[name])


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
