"""Toolbelt's settings, each read when it is first used.

`SETTINGS` is the complete table. `conf.HIDE_DENIED` reads Django's setting `TOOLBELT_HIDE_DENIED`, and if that is not
set, returns the default defined here. Importing this module does not require configured settings; reading a value does.
"""

import dataclasses
import difflib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core import signals

KIND_LOADOUTS: Mapping[str, str]
CONFIRM_OFF_TOOLS: int
HIDE_DENIED: bool
METRICS_TOKEN: str
PLUGINS_FILE: str
PLUGIN_INIT: str
SECRETS_DIR: str
WALLET: str
CALL_SECONDS: float
CALL_RESULT_BYTES: int
CALLS_PER_PLUGIN: int
UPSTREAM_CONNECTIONS: int
SOCKET_DIR: str
RECORD_ARGUMENTS: bool
LEARN_FROM_USE: bool
REPORT_SECONDS: float
RUNNING_SECONDS: float
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
ENVIRONMENT_NAME: str
ENVIRONMENT_COLOR: str


ENVIRONMENT_COLORS = ("gray", "blue", "green", "amber", "red")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting. ``is_valid`` checks a value, and ``expected`` describes valid values."""

    name: str
    default: Any
    description: str
    is_valid: Callable[[Any], bool]
    expected: str


_KIND_LOADOUTS = types.MappingProxyType(
    {"explore": "research", "task": "minimal", "plan": "developer", "review": "developer", "general": "full"}
)


def _is_kind_loadouts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        kind in _KIND_LOADOUTS and isinstance(loadout, str) and loadout for kind, loadout in value.items()
    )


def _boolean(name: str, default: bool, description: str) -> Setting:
    return Setting(
        name=name,
        default=default,
        description=description,
        is_valid=lambda value: isinstance(value, bool),
        expected="true or false",
    )


def _count(name: str, default: int, description: str, *, minimum: int = 1) -> Setting:
    return Setting(
        name=name,
        default=default,
        description=description,
        is_valid=lambda value: type(value) is int and value >= minimum,
        expected="a whole number above 0" if minimum else "a whole number, 0 or more",
    )


def _seconds(name: str, default: int, description: str, *, may_be_zero: bool = False) -> Setting:
    return Setting(
        name=name,
        default=default,
        description=description,
        is_valid=lambda value: type(value) in (int, float) and (value > 0 or (may_be_zero and value == 0)),
        expected="a number of seconds, 0 or more" if may_be_zero else "a number of seconds above 0",
    )


def _path(name: str, of: str, description: str) -> Setting:
    return Setting(
        name=name,
        default="",
        description=description,
        is_valid=lambda value: isinstance(value, str),
        expected=f"the path of a {of}, or empty",
    )


SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="KIND_LOADOUTS",
        default=_KIND_LOADOUTS,
        description="The loadout of each kind of agent or subagent that has no loadout of its own."
        " Kinds that are left out keep their default.",
        is_valid=_is_kind_loadouts,
        expected=f"a mapping from {', '.join(_KIND_LOADOUTS)} to names of loadouts",
    ),
    _count(
        "CONFIRM_OFF_TOOLS",
        25,
        "Turning something off requires confirmation if it removes more active tools than this.",
        minimum=0,
    ),
    _boolean(
        "HIDE_DENIED",
        False,
        "Whether calls of a denied tool are answered `unknown-tool` instead of `tool-denied`, so that an agent cannot"
        " learn what exists.",
    ),
    Setting(
        name="METRICS_TOKEN",
        default="",
        description="The bearer token with which a scraper may read /metrics. Without one, only staff may read it.",
        is_valid=lambda value: isinstance(value, str) and (value == "" or len(value) >= 20),
        expected="empty, or at least 20 characters",
    ),
    _path("PLUGINS_FILE", "file", "The YAML file whose `tool_plugins:` list names the plugins to load."),
    Setting(
        name="PLUGIN_INIT",
        default="lazy",
        description="When plugins are initialized: at their first call (lazy), or when the server starts (start).",
        is_valid=lambda value: value in ("lazy", "start"),
        expected="lazy or start",
    ),
    _path(
        "SECRETS_DIR",
        "directory",
        "A directory of files named `<namespace>__<key>`, each with a plugin's secret.",
    ),
    Setting(
        name="WALLET",
        default="",
        description="The function that returns a plugin's `runtime.wallet`, as `module:attribute`. It receives the"
        " plugin's namespace. Without one, no plugin has a wallet.",
        is_valid=lambda value: isinstance(value, str) and (value == "" or value.count(":") == 1),
        expected="module:attribute, or empty",
    ),
    _seconds("CALL_SECONDS", 60, "The time limit of a call, including the time it waits for a free slot."),
    _count("CALL_RESULT_BYTES", 1_000_000, "The maximum size of a call's result, as JSON in UTF-8."),
    _count(
        "CALLS_PER_PLUGIN", 16, "How many calls of one plugin a process runs at a time. Further calls wait."
    ),
    _count(
        "UPSTREAM_CONNECTIONS",
        100,
        "How many connections to upstream MCP servers a process keeps open in total.",
    ),
    _path(
        "SOCKET_DIR",
        "directory",
        "The directory of the sockets by which the processes of a host pass calls on to each other. If empty, the"
        " user's own directory within the system's temporary directory.",
    ),
    _boolean(
        "RECORD_ARGUMENTS",
        False,
        "Whether call records contain the arguments, without the values of keys that name a secret.",
    ),
    _boolean(
        "LEARN_FROM_USE",
        False,
        "Whether the search of tools keeps words of searches that led to successful calls, and ranks by them.",
    ),
    Setting(
        name="REPORT_SECONDS",
        default=3600,
        description="How long the agent's own program has to report the outcome of an admitted call. Without"
        " a report, the call counts as unreported from then on.",
        is_valid=lambda value: type(value) in (int, float) and 0 < value <= 30 * 86400,
        expected="a number of seconds above 0, at most 30 days",
    ),
    _seconds(
        "RUNNING_SECONDS",
        600,
        "How long a server's last report of the plugins that it runs is valid, so that a restart is not an outage; 0 to"
        " never find out which tools no server runs.",
        may_be_zero=True,
    ),
    _boolean(
        "ALLOW_PRIVATE_HTTP",
        False,
        "Whether plugins may reach private, loopback, link-local and metadata addresses over HTTP.",
    ),
    _boolean(
        "STDIO_BY_WEB",
        False,
        "Whether operators may also set the command of an upstream MCP server in the dashboard, admin and API. Such a"
        " command is code that runs on the server.",
    ),
    Setting(
        name="WEB_VARIABLES",
        default=(),
        description="The environment variables that a connection may use if it was set in the dashboard, admin or API:"
        " names, or prefixes such as `MCP_*`. None by default.",
        is_valid=lambda value: (
            isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
        ),
        expected="a list of names, or of prefixes that end in *",
    ),
    _count(
        "API_PER_MINUTE",
        3000,
        "How many requests per minute each token may send to one process; 0 for no limit.",
        minimum=0,
    ),
    _count("API_BODY_BYTES", 2_500_000, "The maximum size of a request's body in the API."),
    Setting(
        name="API_BODY_DEPTH",
        default=64,
        description="How deeply the JSON in a request's body may be nested.",
        is_valid=lambda value: type(value) is int and 0 < value <= 500,
        expected="a whole number from 1 to 500",
    ),
    _seconds(
        "STALE_SECONDS",
        60,
        "How long agents receive their last known surface, marked as stale, while the database is unavailable; 0 to"
        " turn this off.",
        may_be_zero=True,
    ),
    _count(
        "REQUESTS_AT_ONCE",
        1000,
        "How many requests a process handles at a time, not counting open streams. Further requests are answered with"
        " 503.",
    ),
    _seconds("BODY_SECONDS", 30, "How long the body of a request may take to arrive."),
    Setting(
        name="COMMAND",
        default=".venv/bin/python manage.py",
        description="How this installation's pages and messages print management commands: what precedes a command's"
        " name.",
        is_valid=lambda value: isinstance(value, str) and value.strip() != "" and "\n" not in value,
        expected="one line: what you type before a command's name",
    ),
    Setting(
        name="ENVIRONMENT_NAME",
        default="",
        description="The name of this installation on a badge beside the logo. If empty, there is no badge.",
        is_valid=lambda value: isinstance(value, str) and len(value) <= 20 and "\n" not in value,
        expected="one line of at most 20 characters, or empty",
    ),
    Setting(
        name="ENVIRONMENT_COLOR",
        default="gray",
        description="The color of that badge.",
        is_valid=lambda value: value in ENVIRONMENT_COLORS,
        expected=f"one of {', '.join(ENVIRONMENT_COLORS)}",
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}
# The variables TOOLBELT_… that `toolbelt.settings` and the command read besides these settings.
OTHER_VARIABLES = (
    "DATABASE_POOL",
    "ENV",
    "ENV_FILE",
    "HOME",
    "HSTS_SECONDS",
    "INSECURE_HTTP",
    "LOG_LEVEL",
    "TIME_ZONE",
)
# How similar a variable must be to a setting's name to be a misspelling of it. Programs have others, such as
# TOOLBELT_TOKEN.
_MIN_SIMILARITY = 0.85
_PREFIX = "TOOLBELT_"


def __getattr__(name: str) -> Any:
    if name not in _BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    default = _BY_NAME[name].default
    value = getattr(settings, f"TOOLBELT_{name}", default)
    if isinstance(default, Mapping) and value is not default:
        value = types.MappingProxyType({**default, **value})
    # Kept, because Django takes several microseconds to find that a setting is not set.
    globals()[name] = value
    return value


def _forget(**_: Any) -> None:
    for name in _BY_NAME:
        globals().pop(name, None)


# Tests change settings, and announce it.
signals.setting_changed.connect(_forget, dispatch_uid="toolbelt.conf")


def invalid_settings() -> list[tuple[str, str]]:
    """Return the settings whose values are not valid: each one's name, and what is expected."""
    return [
        (f"TOOLBELT_{setting.name}", setting.expected)
        for setting in SETTINGS
        if not setting.is_valid(getattr(settings, f"TOOLBELT_{setting.name}", setting.default))
    ]


def misspelled_variables(variables: Iterable[str]) -> list[tuple[str, str]]:
    """Return the variables that seem to be misspelled settings, each with the name that is probably meant."""
    names = (*_BY_NAME, *OTHER_VARIABLES)
    misspelled = []
    for variable in sorted(variables):
        name = variable.removeprefix(_PREFIX)
        if name == variable or name in names or name.startswith("SECRET_"):
            continue
        if near := difflib.get_close_matches(name, names, n=1, cutoff=_MIN_SIMILARITY):
            misspelled.append((variable, _PREFIX + near[0]))
    return misspelled
