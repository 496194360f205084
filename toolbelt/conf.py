"""What does Toolbelt decide by, beyond its rows? Its own settings, each read when it is asked for.

`SETTINGS` is the whole table. A value is read as `conf.HIDE_DENIED`; Django looks for it under
`TOOLBELT_HIDE_DENIED`, and where that is not set the default here holds. Importing this module needs no
configured settings; asking for a value does.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings

KIND_LOADOUTS: Mapping[str, str]
CONFIRM_OFF_TOOLS: int
HIDE_DENIED: bool
METRICS_TOKEN: str
PLUGINS_FILE: str
PLUGIN_INIT: str
SECRETS_DIR: str
CALL_SECONDS: float
CALL_RESULT_BYTES: int
CALLS_PER_PLUGIN: int
RECORD_ARGUMENTS: bool
ALLOW_PRIVATE_HTTP: bool
STDIO_BY_WEB: bool
WEB_VARIABLES: Sequence[str]
API_PER_MINUTE: int
API_BODY_BYTES: int
API_BODY_DEPTH: int
STALE_SECONDS: float
REQUESTS_AT_ONCE: int
BODY_SECONDS: float
COMMAND: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    default: Any
    means: str
    sound: Callable[[Any], bool]
    should_be: str


_KIND_LOADOUTS = types.MappingProxyType(
    {"explore": "research", "task": "minimal", "plan": "developer", "review": "developer", "general": "full"}
)


def _is_kind_loadouts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        kind in _KIND_LOADOUTS and isinstance(loadout, str) and loadout for kind, loadout in value.items()
    )


SETTINGS = (
    Setting(
        name="KIND_LOADOUTS",
        default=_KIND_LOADOUTS,
        means="The loadout of an agent, or of a subagent, that names a kind and no loadout of its own."
        " Kinds that are left out keep their default.",
        sound=_is_kind_loadouts,
        should_be=f"a mapping from {', '.join(_KIND_LOADOUTS)} to names of loadouts",
    ),
    Setting(
        name="CONFIRM_OFF_TOOLS",
        default=25,
        means="An off that takes more active tools away than this asks the operator to confirm.",
        sound=lambda value: type(value) is int and value >= 0,
        should_be="a whole number, 0 or more",
    ),
    Setting(
        name="HIDE_DENIED",
        default=False,
        means="Calls of a denied tool are answered `unknown-tool` instead of `tool-denied`,"
        " so that an agent cannot learn what exists.",
        sound=lambda value: isinstance(value, bool),
        should_be="true or false",
    ),
    Setting(
        name="METRICS_TOKEN",
        default="",
        means="The bearer token with which a scraper may read /metrics; without one, staff alone may.",
        sound=lambda value: isinstance(value, str) and (value == "" or len(value) >= 20),
        should_be="empty, or at least 20 characters",
    ),
    Setting(
        name="PLUGINS_FILE",
        default="",
        means="The YAML file whose `tool_plugins:` list says which plugins run here; without one, none does.",
        sound=lambda value: isinstance(value, str),
        should_be="the path of a file, or empty",
    ),
    Setting(
        name="PLUGIN_INIT",
        default="lazy",
        means="When a plugin is initialized: at its first call, or when the server starts.",
        sound=lambda value: value in ("lazy", "start"),
        should_be="lazy or start",
    ),
    Setting(
        name="SECRETS_DIR",
        default="",
        means="A directory of files named `<namespace>__<key>`, each with one secret of a plugin.",
        sound=lambda value: isinstance(value, str),
        should_be="the path of a directory, or empty",
    ),
    Setting(
        name="CALL_SECONDS",
        default=60,
        means="The longest that a call may take, with what it waits for a place.",
        sound=lambda value: type(value) in (int, float) and value > 0,
        should_be="a number of seconds above 0",
    ),
    Setting(
        name="CALL_RESULT_BYTES",
        default=1_000_000,
        means="The largest result of a call, as JSON in UTF-8.",
        sound=lambda value: type(value) is int and value > 0,
        should_be="a whole number above 0",
    ),
    Setting(
        name="CALLS_PER_PLUGIN",
        default=16,
        means="The most calls of one plugin that one process runs at a time; others wait.",
        sound=lambda value: type(value) is int and value > 0,
        should_be="a whole number above 0",
    ),
    Setting(
        name="RECORD_ARGUMENTS",
        default=False,
        means="Keep the arguments of calls in their records, without the values of keys that name a secret.",
        sound=lambda value: isinstance(value, bool),
        should_be="true or false",
    ),
    Setting(
        name="ALLOW_PRIVATE_HTTP",
        default=False,
        means="Let plugins reach private, loopback, link-local and metadata addresses over HTTP.",
        sound=lambda value: isinstance(value, bool),
        should_be="true or false",
    ),
    Setting(
        name="STDIO_BY_WEB",
        default=False,
        means="Let operators set the command of an upstream MCP server by screen, admin and API too:"
        " it is code that runs on the server.",
        sound=lambda value: isinstance(value, bool),
        should_be="true or false",
    ),
    Setting(
        name="WEB_VARIABLES",
        default=(),
        means="Which variables of the server's environment a connection may name that comes in by screen, admin or"
        " API: names, or beginnings such as `MCP_*`. By default, none.",
        sound=lambda value: isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value),
        should_be="a list of names, or of beginnings that end in *",
    ),
    Setting(
        name="API_PER_MINUTE",
        default=3000,
        means="How many requests a minute each token may make of one process; 0: any number.",
        sound=lambda value: type(value) is int and value >= 0,
        should_be="a whole number, 0 or more",
    ),
    Setting(
        name="API_BODY_BYTES",
        default=2_500_000,
        means="The largest body that the API takes.",
        sound=lambda value: type(value) is int and value > 0,
        should_be="a whole number above 0",
    ),
    Setting(
        name="API_BODY_DEPTH",
        default=64,
        means="How deep the JSON in a body may be nested.",
        sound=lambda value: type(value) is int and 0 < value <= 500,
        should_be="a whole number from 1 to 500",
    ),
    Setting(
        name="STALE_SECONDS",
        default=60,
        means="How long an agent keeps the surface that it last had, marked as stale, while the database cannot be"
        " read; 0: not at all.",
        sound=lambda value: type(value) in (int, float) and value >= 0,
        should_be="a number of seconds, 0 or more",
    ),
    Setting(
        name="REQUESTS_AT_ONCE",
        default=1000,
        means="How many requests one process works on at a time; open streams do not count. Others are answered 503.",
        sound=lambda value: type(value) is int and value > 0,
        should_be="a whole number above 0",
    ),
    Setting(
        name="BODY_SECONDS",
        default=30,
        means="How long the body of a request may take to arrive.",
        sound=lambda value: type(value) in (int, float) and value > 0,
        should_be="a number of seconds above 0",
    ),
    Setting(
        name="COMMAND",
        default=".venv/bin/python manage.py",
        means="How a command of this installation is run, as its pages and messages print it: what stands before the"
        " command's name.",
        sound=lambda value: isinstance(value, str) and value.strip() != "" and "\n" not in value,
        should_be="what is typed in a shell before a command's name, in one line",
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


def __getattr__(name: str) -> Any:
    if name not in _BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    default = _BY_NAME[name].default
    value = getattr(settings, f"TOOLBELT_{name}", default)
    if isinstance(default, Mapping) and value is not default:
        return types.MappingProxyType({**default, **value})
    return value


def unsound() -> list[tuple[str, str]]:
    """The settings whose value cannot be used: (name as set, what it should be)."""
    return [
        (f"TOOLBELT_{setting.name}", setting.should_be)
        for setting in SETTINGS
        if not setting.sound(getattr(settings, f"TOOLBELT_{setting.name}", setting.default))
    ]
