"""The installation's Django settings, read from environment variables. `.env.example` explains each variable.

The default is production: only HTTPS, and no start without a real secret key and hosts. `TOOLBELT_ENV` selects a more
permissive environment: `development`, `demo` (like production, but over plain HTTP on this machine) or `test`.
"""

import importlib.util
import logging
import os
import sys
import tempfile
import warnings
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_origin

import environ
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from toolbelt import conf, locations
from toolbelt.settings import logs, shown_command

# The installation's own files: its settings, a SQLite database, the collected static files.
BASE_DIR = locations.home()

env = environ.Env()

env_file = BASE_DIR / os.environ.get("TOOLBELT_ENV_FILE", ".env")
if "TOOLBELT_ENV_FILE" in os.environ and not env_file.exists():
    raise ImproperlyConfigured(f"Set TOOLBELT_ENV_FILE to an existing file: {env_file} does not exist.")
# The test environment reads no file, so that tests run the same on every machine.
if os.environ.get("TOOLBELT_ENV") != "test":
    env.read_env(env_file)

ENVIRONMENTS = ("production", "demo", "development", "test")
ENVIRONMENT = env.str("TOOLBELT_ENV", default="production")
if ENVIRONMENT not in ENVIRONMENTS:
    raise ImproperlyConfigured(f"Set TOOLBELT_ENV to one of {', '.join(ENVIRONMENTS)}, not {ENVIRONMENT!r}.")

CLOSED = ENVIRONMENT in ("production", "demo")

if ENVIRONMENT in ("demo", "development"):
    # The repository that the demo's real tools work on; its plugins file names it by this variable.
    os.environ.setdefault("DEMO_REPOSITORY", str(BASE_DIR / "demo-repository"))

# Secrets and hosts

DEBUG = env.bool("DEBUG", default=ENVIRONMENT == "development")
SECRET_KEY = env.str("SECRET_KEY", default="" if CLOSED else f"insecure-key-of-the-{ENVIRONMENT}-environment")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=[] if CLOSED else ["localhost", "127.0.0.1", "[::1]", "testserver"]
)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])


def missing_settings() -> list[str]:
    """Return the settings that are missing before a closed installation may start, as parts of a sentence."""
    missing = []
    if len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 10 or SECRET_KEY.startswith(("replace-", "insecure-")):
        missing.append("SECRET_KEY to at least 50 random characters of its own")
    if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
        missing.append("ALLOWED_HOSTS to the host names that this installation answers to")
    if DEBUG:
        missing.append("DEBUG to off")
    return missing


if CLOSED and (missing := missing_settings()):
    if locations.IS_CHECKOUT:
        way_out = ". See .env.example, or set TOOLBELT_ENV=development to work on Toolbelt itself."
    elif env_file.exists():
        way_out = f" in {env_file} or in the environment."
    else:
        way_out = ", or run `toolbelt init`, which creates an installation."
    raise ImproperlyConfigured(f"Toolbelt runs as {ENVIRONMENT}: set {' and '.join(missing)}{way_out}")


def number(name: str, default: int) -> int:
    """Return the whole number in a variable."""
    try:
        return int(env.int(name, default=default))
    except ValueError:
        raise ImproperlyConfigured(f"Set {name} to a whole number, not {env.str(name)!r}.") from None


# Applications

INSTALLED_APPS = [
    # The authorization server of MCP clients (toolbelt.oauth). First, so that toolbelt.admin can leave its tables out.
    "oauth2_provider",
    # Second factors, of which the library's pages are not used. Its accounts are what they rest on.
    "allauth.account",
    "allauth.mfa",
    "toolbelt",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # The templates of its widgets, beside those of toolbelt.web.kit.entry_forms.
    "django.forms",
    "django_htmx",
    "template_partials",
    "axes",
    "csp",
    "django_prometheus",
    "django_structlog",
]
if not CLOSED and importlib.util.find_spec("django_linear_migrations"):
    # A development tool for writing migrations.
    INSTALLED_APPS.append("django_linear_migrations")

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "toolbelt.web.kit.unconfigured.plain_http_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    # Outside of everything that may refuse a request, so that a refusal has its request id too.
    "toolbelt.web.kit.request_ids.RequestMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "toolbelt.api.problems.problem_middleware",
    "toolbelt.api.limits.agent_connections_middleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "toolbelt.web.login.browsers.Middleware",
    "toolbelt.web.kit.preferences.time_zone_middleware",
    "toolbelt.web.kit.page_shell.htmx_leaves",
    "toolbelt.web.kit.hidden_characters.middleware",
    # Every view requires a login by default, so a forgotten decorator cannot open a page.
    "toolbelt.web.kit.kept_forms.Middleware",
    "toolbelt.web.login.second_factor.Middleware",
    "toolbelt.web.kit.live.CountsMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
    "axes.middleware.AxesMiddleware",
    "toolbelt.web.login.passwords.BusyMiddleware",
    "toolbelt.web.kit.responses.ErrorMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "toolbelt.urls"
ASGI_APPLICATION = "toolbelt.asgi.application"
WSGI_APPLICATION = "toolbelt.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [locations.ASSETS / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "toolbelt.web.kit.page_shell.chrome_context",
            ],
            "builtins": [
                "template_partials.templatetags.partials",
                "toolbelt.web.kit.tags",
                "toolbelt.web.kit.template_filters",
            ],
        },
    },
]

# Database and cache


def database() -> dict[str, Any]:
    """Return the database settings, with which concurrent writers wait for each other instead of failing."""
    # For an unknown scheme, the warning would contain the whole address, including its password.
    with warnings.catch_warnings(action="ignore"):
        try:
            settings: dict[str, Any] = dict(env.db("DATABASE_URL", default="sqlite:///db.sqlite3"))
        except ValueError:
            # The error quotes a part of the address, which can be its password.
            raise ImproperlyConfigured(
                "Set DATABASE_URL to an address such as postgres://user:password@host:5432/name. Encode characters of"
                " the user and the password that have a meaning in addresses: / is %2F, # is %23, ? is %3F and @ is"
                " %40."
            ) from None
    match settings.get("ENGINE"):
        case "django.db.backends.sqlite3":
            _complete_sqlite(settings)
        case "django.db.backends.postgresql":
            _complete_postgresql(settings)
        case _:  # none, if the scheme is unknown or missing
            raise ImproperlyConfigured(
                "Set DATABASE_URL to an address that begins with sqlite:// or postgres://."
            )
    return settings


def _complete_sqlite(settings: dict[str, Any]) -> None:
    if settings["NAME"] != ":memory:":
        settings["NAME"] = str(BASE_DIR / settings["NAME"])
    settings.setdefault("OPTIONS", {}).update(
        # A transaction takes the write lock when it begins, so that it cannot fail after its first read.
        transaction_mode="IMMEDIATE",
        # Writers that wait longer than this get the error that the database is busy.
        timeout=4,
        # Recursive triggers, so that rows deleted by INSERT OR REPLACE fire the triggers for deletions.
        init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
        "PRAGMA recursive_triggers=ON;",
    )
    # A file, because tests use it from other processes too. One per process, because test runs may overlap.
    settings["TEST"] = {"NAME": f"{tempfile.gettempdir()}/toolbelt-test-{os.getpid()}.sqlite3"}


def _complete_postgresql(settings: dict[str, Any]) -> None:
    options: dict[str, Any] = settings.setdefault("OPTIONS", {})
    if not settings["NAME"] and "service" not in options:
        raise ImproperlyConfigured(
            "Set DATABASE_URL to an address with the name of a database, such as"
            " postgres://user:password@host:5432/name."
        )
    # Imported here: an installation on SQLite needs no driver of PostgreSQL.
    from toolbelt.settings import pooling

    settings["ENGINE"] = "toolbelt.store.postgresql"
    # An unavailable server is noticed within 4 seconds, which leaves one second for the error page. What comes before
    # (the probe of requests for surfaces, and the wait for an agent's share of the pool) counts, too.
    options.setdefault("connect_timeout", 3)
    options.setdefault("tcp_user_timeout", 4000)
    # A connection that was closed while it was idle is replaced before its next use.
    settings["CONN_HEALTH_CHECKS"] = True
    if ENVIRONMENT != "test" and (size := number("TOOLBELT_DATABASE_POOL", default=10)):
        options["pool"] = {
            "min_size": 1,
            "max_size": size,
            "timeout": 2,
            # Then the next request tries again, because the pool's own pauses grow to minutes.
            "reconnect_timeout": 3,
            "connection_class": pooling.Connection,
        }


DATABASES = {"default": database()}

if redis_url := env.str("REDIS_URL", default=""):
    if importlib.util.find_spec("django_redis") is None:
        raise ImproperlyConfigured(
            f"REDIS_URL needs the client of Redis: run `pip install '{locations.DISTRIBUTION}[redis]'`."
        )
    CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# Login

LOGIN_URL = "/login/"
# Only in the database: a copy in a cache could outlive a login that was ended.
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 14 * 86_400  # seconds since the login
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = ["toolbelt.web.login.passwords.Argon2PasswordHasher"]
if ENVIRONMENT == "test":
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # faster: tests create many users
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "CommonPasswordValidator", "NumericPasswordValidator")
] + [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    }
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HANDLER = "toolbelt.web.login.passwords.AxesHandler"  # also limits attempts per IP address
AXES_RESET_ON_SUCCESS = True
# A lockout lasts a quarter of an hour, and attempts during it do not extend it.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_TEMPLATE = "locked_out.html"
# What it must not store of a form that failed.
AXES_SENSITIVE_PARAMETERS = [
    "username",
    "ip_address",
    "old_password",
    "new_password1",
    "new_password2",
    "code",
    "credential",
    "kept",
]
CSRF_FAILURE_VIEW = "toolbelt.web.kit.page_shell.csrf_failure"

# Sign-in of MCP clients. `docs/decisions/0066-clients-sign-in-with-oauth.md` says why each of these is set.

# The library's own tables, named because rows of Toolbelt refer to them.
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "oauth2_provider.AccessToken"  # noqa: S105 (no password)
OAUTH2_PROVIDER = {
    # Authorization codes and refresh tokens, and no other grants.
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "toolbelt.oauth.validator.Validator",
    "ACCESS_TOKEN_GENERATOR": "toolbelt.oauth.validator.new_token",
    "REFRESH_TOKEN_GENERATOR": "toolbelt.oauth.validator.new_token",
    "SCOPES": {"tools": "Use the agent's tools"},
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    # Without use. Each refresh begins it again.
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 86_400,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # RFC 8252, 7.3: clients on the person's machine take any free port.
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
    "DCR_ENABLED": True,
    "CIMD_METADATA_FETCHER": "toolbelt.oauth.documents.Fetcher",
    "CIMD_REGISTRATION_PERMISSION_CLASSES": ("toolbelt.oauth.documents.Permission",),
    "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
    "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token"],
    "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": ["none"],
}

# Sign-in of operators with a provider. `docs/decisions/0075-operators-sign-in-with-a-provider.md` says what is used of
# the library: none of its pages.

SOCIALACCOUNT_ADAPTER = "toolbelt.web.login.provider.Adapter"

# Second factors. `docs/decisions/0077-second-factors.md` says what is used of the library.

MFA_ADAPTER = "toolbelt.web.login.second_factor.Adapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
# The clock of a phone may be half a minute off.
MFA_TOTP_TOLERANCE = 1
# A passkey asks for the person's finger or PIN, so it is both factors at once.
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"
# Its own limits count in each process: toolbelt.web.login.passwords counts in the database.
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False

# Mail, which is sent if TOOLBELT_EMAIL_FROM is set

try:
    globals().update(env.email_url("EMAIL_URL", default="smtp://localhost:25"))
except (ValueError, KeyError):
    # The error quotes the address, which has a password.
    raise ImproperlyConfigured(
        "Set EMAIL_URL to an address such as smtp+tls://user:password@mail.example.com:587."
    ) from None
# A person waits for it.
EMAIL_TIMEOUT = 10

# What a browser may do

INSECURE_HTTP = env.bool("TOOLBELT_INSECURE_HTTP", default=ENVIRONMENT != "production")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not INSECURE_HTTP
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # probes come from inside, without TLS
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else number("TOOLBELT_HSTS_SECONDS", default=365 * 24 * 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = not INSECURE_HTTP
# Preloading covers a whole domain, so it is the domain owner's decision and not this application's. And redirect URIs
# with http are those of clients on the person's own machine: toolbelt.oauth.registration refuses all others.
SILENCED_SYSTEM_CHECKS = ["security.W021", "oauth2_provider.W008"]
CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
PERMISSIONS_POLICY: dict[str, list[str]] = {
    "accelerometer": [],
    "camera": [],
    "display-capture": [],
    "geolocation": [],
    "gyroscope": [],
    "magnetometer": [],
    "microphone": [],
    "payment": [],
    "usb": [],
}

# The toolkit editor sends up to ten fields for each tool with a trigger, and the admin as many for an agent's rows.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# Files, language, time

STATIC_URL = "/static/"
# Production serves the collected files; other environments serve them from their sources.
COLLECTED = ENVIRONMENT == "production"
STATIC_ROOT = BASE_DIR / "staticfiles" if COLLECTED else None
STATICFILES_DIRS = [locations.ASSETS / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if COLLECTED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not COLLECTED
# Pages name files by their content, and never ask for the copies under their own names.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
# Scanning all files at start takes longer than most tests, and each test client would do it.
WHITENOISE_AUTOREFRESH = ENVIRONMENT in ("development", "test")

FIXTURE_DIRS = [locations.ASSETS / "fixtures"]

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str("TOOLBELT_TIME_ZONE", default="UTC")
try:
    zoneinfo.ZoneInfo(TIME_ZONE)
except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # Europe, for example, is a directory of zones
    raise ImproperlyConfigured(
        f"Set TOOLBELT_TIME_ZONE to a zone such as Europe/Berlin, not {TIME_ZONE!r}."
    ) from None

# Toolbelt's own settings: `toolbelt.conf` declares them with their types, defaults and meanings

_READERS: dict[Any, Callable[[str], Any]] = {
    bool: env.bool,
    float: env.float,
    int: env.int,
    Mapping: env.dict,
    Sequence: env.list,
}
for _setting, _declared in conf.SETTINGS.items():
    _read = _READERS.get(get_origin(_declared.annotation) or _declared.annotation, env.str)
    _variable = f"TOOLBELT_{_setting}"
    if _variable in env:
        try:
            globals()[_variable] = _read(_variable)
        except ValueError:
            expected = "NAME=VALUE,…" if _read == env.dict else "a number"
            raise ImproperlyConfigured(
                f"Set {_variable} to {expected}, not {env.str(_variable)!r}."
            ) from None
OAUTH2_PROVIDER["ALLOWED_REDIRECT_URI_SCHEMES"] = [
    "https",
    "http",
    *globals().get("TOOLBELT_REDIRECT_SCHEMES", conf.SETTINGS["REDIRECT_SCHEMES"].default),
]
OAUTH2_PROVIDER["CIMD_ENABLED"] = globals().get("TOOLBELT_CLIENT_DOCUMENTS", False)
if globals().get("TOOLBELT_LOCAL_LOGIN") == "superusers":
    # Another backend, so that logins with passwords from before end, too.
    AUTHENTICATION_BACKENDS[-1] = "toolbelt.web.login.backends.SuperusersBackend"
# The tests have its tables whatever the settings are, and change these.
if globals().get("TOOLBELT_SIGN_IN_ISSUER") or ENVIRONMENT == "test":
    # First, so that toolbelt.admin can leave their tables out.
    INSTALLED_APPS.insert(0, "allauth.socialaccount")
    AUTHENTICATION_BACKENDS.append("toolbelt.web.login.backends.ProviderBackend")
# Django rejects larger bodies before the API can check them.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(
    globals().get("TOOLBELT_API_BODY_BYTES", 0), global_settings.DATA_UPLOAD_MAX_MEMORY_SIZE
)
if "TOOLBELT_COMMAND" not in env and ENVIRONMENT != "test":
    TOOLBELT_COMMAND, ABSOLUTE_COMMAND = (
        shown_command.derive(
            BASE_DIR,
            is_checkout=locations.IS_CHECKOUT,
            prefix=sys.prefix,
            environ=os.environ,
            is_absolute=is_absolute,
        )
        for is_absolute in (False, True)
    )
# Production, where a mistake costs most, shows its name in red.
if ENVIRONMENT != "test":
    globals().setdefault("TOOLBELT_ENVIRONMENT_NAME", ENVIRONMENT.upper())
    globals().setdefault("TOOLBELT_ENVIRONMENT_COLOR", "red" if ENVIRONMENT == "production" else "gray")

# Logs

# One line per request: the one with the response.
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
# It would trust any X-Forwarded-For; `toolbelt.web.kit.request_ids` binds the real address.
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
AXES_VERBOSE = False
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_LEVEL = env.str("TOOLBELT_LOG_LEVEL", default="INFO").upper()
if LOG_LEVEL not in LOG_LEVELS:
    raise ImproperlyConfigured(
        f"Set TOOLBELT_LOG_LEVEL to one of {', '.join(LOG_LEVELS)}, not {LOG_LEVEL!r}."
    )
LOGS_AS_JSON = logs.is_json(ENVIRONMENT)
LOGGING = logs.configure(level=LOG_LEVEL, as_json=LOGS_AS_JSON)
