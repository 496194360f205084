"""Toolbelt's settings, each read when it is first used.

Each is declared once, with its type, its default and what is expected of it. `conf.HIDE_DENIED` reads Django's setting
`TOOLBELT_HIDE_DENIED`, and if that is not set, returns the default. Importing this module does not require configured
settings; reading a value does.
"""

import difflib
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_type_hints

import pydantic
from django.conf import settings
from django.core import signals
from pydantic import Field, fields

from toolbelt.core import agents, call_approvals

_Positive = Annotated[int, Field(gt=0, description="a whole number above 0")]
_Count = Annotated[int, Field(ge=0, description="a whole number, 0 or more")]
_Seconds = Annotated[float, Field(gt=0, description="a number of seconds above 0")]
_SecondsOrNone = Annotated[float, Field(ge=0, description="a number of seconds, 0 or more")]
_YesNo = Annotated[bool, Field(description="true or false")]
_File = Annotated[str, Field(default="", description="the path of a file, or empty")]
_Directory = Annotated[str, Field(default="", description="the path of a directory, or empty")]
_Kind = Annotated[str, Field(pattern=f"^({'|'.join(agents.KINDS)})$")]


def _opens_an_app(scheme: str) -> str:
    """Return the scheme. Raise ValueError for one that a browser runs or shows itself."""
    if scheme in ("about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"):
        raise ValueError(f"{scheme} opens no app")
    return scheme


_Color = Literal["gray", "blue", "green", "amber", "red"]

# The loadout of each kind of agent or subagent that has no loadout of its own. Kinds that are left out keep their
# default.
KIND_LOADOUTS: Annotated[
    Mapping[_Kind, Annotated[str, Field(min_length=1)]],
    Field(
        default=agents.KIND_LOADOUTS,
        description=f"a mapping from {', '.join(agents.KINDS)} to names of loadouts",
    ),
]
# Turning something off requires confirmation if it removes more active tools than this.
CONFIRM_OFF_TOOLS: Annotated[_Count, Field(default=25)]
# Whether calls of a denied tool are answered `unknown-tool` instead of `tool-denied`, so that an agent cannot learn
# what exists.
HIDE_DENIED: Annotated[_YesNo, Field(default=False)]
# The bearer token with which a scraper may read /metrics. Without one, only staff may read it.
METRICS_TOKEN: Annotated[
    str, Field(default="", pattern="(?s)^(.{20,})?$", description="empty, or at least 20 characters")
]
# The YAML file whose `tool_plugins:` list names the plugins to load.
PLUGINS_FILE: _File
# When plugins are initialized: at their first call (lazy), or when the server starts (start).
PLUGIN_INIT: Annotated[Literal["lazy", "start"], Field(default="lazy", description="lazy or start")]
# A directory of files named `<namespace>__<key>`, each with a plugin's secret.
SECRETS_DIR: _Directory
# The function that returns a plugin's `runtime.wallet`. It receives the plugin's namespace. Without one, no plugin has
# a wallet.
WALLET: Annotated[
    str, Field(default="", pattern="^([^:]*:[^:]*)?$", description="module:attribute, or empty")
]
# The time limit of a call, including the time it waits for a free slot.
CALL_SECONDS: Annotated[_Seconds, Field(default=60)]
# The maximum size of a call's result, as JSON in UTF-8.
CALL_RESULT_BYTES: Annotated[_Positive, Field(default=1_000_000)]
# The maximum size of a resource of an upstream server, such as the screen of an app.
RESOURCE_BYTES: Annotated[_Positive, Field(default=10_000_000)]
# How many calls of one plugin a process runs at a time. Further calls wait.
CALLS_PER_PLUGIN: Annotated[_Positive, Field(default=16)]
# How many connections to upstream MCP servers a process keeps open in total.
UPSTREAM_CONNECTIONS: Annotated[_Positive, Field(default=100)]
# The directory of the sockets by which the processes of a host pass calls on to each other. If empty, the user's own
# directory within the system's temporary directory.
SOCKET_DIR: _Directory
# Whether call records contain the arguments, without the values of keys that name a secret.
RECORD_ARGUMENTS: Annotated[_YesNo, Field(default=False)]
# Whether the search of tools keeps words of searches that led to successful calls, and ranks by them.
LEARN_FROM_USE: Annotated[_YesNo, Field(default=False)]
# How long what conversations learned is kept after they were last seen, in days.
CONVERSATIONS_DAYS: Annotated[
    int, Field(default=14, gt=0, le=3650, description="a whole number of days from 1 to 3650")
]
# How long the agent's own program has to report the outcome of an admitted call. Without a report, the call counts as
# unreported from then on.
REPORT_SECONDS: Annotated[
    float,
    Field(
        default=3600,
        gt=0,
        le=30 * 86400,
        description="a number of seconds above 0, at most 30 days",
    ),
]
# How long people have to decide about a call that waits for approval, in seconds, where its rule does not say.
APPROVAL_EXPIRES: Annotated[
    int,
    Field(
        default=call_approvals.DEFAULT_SECONDS,
        gt=0,
        le=call_approvals.MAX_SECONDS,
        description="a whole number of seconds above 0, at most 30 days",
    ),
]
# How long a call over MCP, or of a program on an event loop, waits for approval before it is answered, in seconds. Most
# MCP clients end a request after a minute.
APPROVAL_WAIT: Annotated[
    float, Field(default=20, ge=0, le=45, description="a number of seconds from 0 to 45")
]
# How often a session may make exactly the same call within ten minutes, where no rule says otherwise; 0 for no limit.
IDENTICAL_CALLS: Annotated[_Count, Field(default=300)]
# How long a server's last report of the plugins that it runs is valid, so that a restart is not an outage; 0 to never
# find out which tools no server runs.
RUNNING_SECONDS: Annotated[_SecondsOrNone, Field(default=600)]
# Whether plugins may reach private, loopback, link-local and metadata addresses over HTTP.
ALLOW_PRIVATE_HTTP: Annotated[_YesNo, Field(default=False)]
# The YAML file that says where alerts are sent.
ALERTS_FILE: _File
# Whether operators may also set the command of an upstream MCP server in the dashboard, admin and API. Such a command
# is code that runs on the server.
STDIO_BY_WEB: Annotated[_YesNo, Field(default=False)]
# The environment variables that a connection may use if it was set in the dashboard, admin or API: names, or prefixes
# such as `MCP_*`. None by default.
WEB_VARIABLES: Annotated[
    Sequence[str], Field(default=(), description="a list of names, or of prefixes that end in *")
]
# The schemes of the addresses, besides https, to which MCP clients that are apps on a person's machine are sent back
# after a sign-in.
REDIRECT_SCHEMES: Annotated[
    Sequence[Annotated[str, Field(pattern="^[a-z][a-z0-9.+-]*$"), pydantic.AfterValidator(_opens_an_app)]],
    Field(
        default=("cursor", "vscode", "vscode-insiders"),
        description="a list of schemes such as vscode, without a colon",
    ),
]
# Whether an MCP client may use the address of a document about itself as its id, instead of registering. Toolbelt
# fetches the document.
CLIENT_DOCUMENTS: Annotated[_YesNo, Field(default=False)]
# The keys that encrypt the tokens of sign-ins at upstream servers. The first one encrypts; all decrypt.
ENCRYPTION_KEYS: Annotated[
    Sequence[Annotated[str, Field(pattern="^[A-Za-z0-9_-]{43}=$")]],
    Field(default=(), description="a list of keys of 32 bytes in base64, as `encryption new-key` prints one"),
]
# The issuer of the OpenID Connect provider with which operators log in. If empty, they log in with passwords only.
SIGN_IN_ISSUER: Annotated[
    str,
    Field(
        default="",
        pattern=r"^(https://[^\s?#]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^\s?#]*)?)?$",
        description="empty, or the provider's address with https, or with http on this machine",
    ),
]
# What the provider calls this installation, and the secret that proves it.
SIGN_IN_CLIENT_ID: Annotated[str, Field(default="")]
SIGN_IN_CLIENT_SECRET: Annotated[str, Field(default="")]
# How pages name the provider: "Log in with Okta".
SIGN_IN_NAME: Annotated[
    str,
    Field(default="single sign-on", pattern=r"^[^\n]{1,40}$", description="one line of 1 to 40 characters"),
]
# What is asked of the provider. Some send groups only for a scope of their own.
SIGN_IN_SCOPES: Annotated[
    Sequence[str],
    Field(default=("openid", "profile", "email"), description="a list of scopes such as openid"),
]
# The claim with the groups of a person.
SIGN_IN_GROUPS_CLAIM: Annotated[str, Field(default="groups", min_length=1, description="the name of a claim")]
# The role that each group gives. If empty, the provider gives no roles, and only people who have an account log in.
SIGN_IN_ROLES: Annotated[
    Mapping[
        Annotated[str, Field(min_length=1)],
        Annotated[str, Field(pattern="^(viewer|approver|operator|administrator)$")],
    ],
    Field(
        default=types.MappingProxyType({}),
        description="a mapping from groups to viewer, approver, operator or administrator",
    ),
]
# Who may log in with a password that is stored here.
LOCAL_LOGIN: Annotated[
    Literal["everyone", "superusers"], Field(default="everyone", description="everyone or superusers")
]
# Who must set up a second factor before they can do anything else, if they log in with a password.
REQUIRE_SECOND_FACTOR: Annotated[
    Literal["off", "administrators", "everyone"],
    Field(default="off", description="off, administrators or everyone"),
]
# The address from which mail is sent. If empty, none is sent.
EMAIL_FROM: Annotated[
    str,
    Field(
        default="",
        pattern=r"^([^\s@<>]+@[^\s@<>]+|[^@<>\n]+ <[^\s@<>]+@[^\s@<>]+>)?$",
        description="empty, or an address such as toolbelt@example.com",
    ),
]
# How many requests per minute each token may send to one process; 0 for no limit.
API_PER_MINUTE: Annotated[_Count, Field(default=3000)]
# The maximum size of a request's body in the API.
API_BODY_BYTES: Annotated[_Positive, Field(default=2_500_000)]
# How deeply the JSON in a request's body may be nested.
API_BODY_DEPTH: Annotated[int, Field(default=64, gt=0, le=500, description="a whole number from 1 to 500")]
# How long agents receive their last known surface, marked as stale, while the database is unavailable; 0 to turn this
# off.
STALE_SECONDS: Annotated[_SecondsOrNone, Field(default=60)]
# How many requests a process handles at a time, not counting open streams. Further requests are answered with 503.
REQUESTS_AT_ONCE: Annotated[_Positive, Field(default=1000)]
# How long the body of a request may take to arrive.
BODY_SECONDS: Annotated[_Seconds, Field(default=30)]
# How this installation's pages and messages print management commands: what precedes a command's name.
COMMAND: Annotated[
    str,
    Field(
        default=".venv/bin/python manage.py",
        pattern=r"^[^\n]*\S[^\n]*$",
        description="one line: what you type before a command's name",
    ),
]
# The name of this installation on a badge beside the logo. If empty, there is no badge.
ENVIRONMENT_NAME: Annotated[
    str,
    Field(
        default="",
        max_length=20,
        pattern=r"^[^\n]*$",
        description="one line of at most 20 characters, or empty",
    ),
]
# The color of that badge.
ENVIRONMENT_COLOR: Annotated[
    _Color, Field(default="gray", description=f"one of {', '.join(get_args(_Color))}")
]

_hints = get_type_hints(sys.modules[__name__], include_extras=True)
_Settings: type[pydantic.BaseModel] = pydantic.create_model(
    "_Settings", __config__=pydantic.ConfigDict(strict=True), **_hints
)
SETTINGS: Mapping[str, fields.FieldInfo] = _Settings.model_fields

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
    if name not in SETTINGS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    default = SETTINGS[name].default
    value = getattr(settings, f"TOOLBELT_{name}", default)
    if isinstance(default, Mapping):
        value = types.MappingProxyType({**default, **value})
    # Kept, because Django takes several microseconds to find that a setting is not set.
    globals()[name] = value
    return value


def _forget(**_: Any) -> None:
    for name in SETTINGS:
        globals().pop(name, None)


# Tests change settings, and announce it.
signals.setting_changed.connect(_forget, dispatch_uid="toolbelt.conf")


def invalid_settings() -> list[tuple[str, str]]:
    """Return the settings whose values are not valid: each one's name, and what is expected."""
    stated = {name: getattr(settings, f"TOOLBELT_{name}", field.default) for name, field in SETTINGS.items()}
    try:
        _Settings.model_validate(stated)
    except pydantic.ValidationError as error:
        names = dict.fromkeys(str(detail["loc"][0]) for detail in error.errors())
        return [(f"TOOLBELT_{name}", SETTINGS[name].description or "") for name in names]
    return []


def misspelled_variables(variables: Iterable[str]) -> list[tuple[str, str]]:
    """Return the variables that seem to be misspelled settings, each with the name that is probably meant."""
    names = (*SETTINGS, *OTHER_VARIABLES)
    misspelled = []
    for variable in sorted(variables):
        name = variable.removeprefix(_PREFIX)
        if name == variable or name in names or name.startswith("SECRET_"):
            continue
        if near := difflib.get_close_matches(name, names, n=1, cutoff=_MIN_SIMILARITY):
            misspelled.append((variable, _PREFIX + near[0]))
    return misspelled
