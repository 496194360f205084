"""How is this installation set up? Everything comes from the environment; `.env.example` explains each variable.

The default is production: closed, over HTTPS, and it does not start before it has a real secret key and hosts.
`TOOLBELT_ENV` relaxes that by name: `development`, `demo` (as closed as production, over plain HTTP on this
machine) and `test`.
"""

import importlib.util
import logging
import os
import sys
import tempfile
import warnings
import zoneinfo
from pathlib import Path
from typing import Any

import environ
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from toolbelt.settings import command_line, logs, pooling

BASE_DIR = Path(__file__).resolve().parent.parent.parent

env = environ.Env()

env_file = BASE_DIR / os.environ.get("TOOLBELT_ENV_FILE", ".env")
if "TOOLBELT_ENV_FILE" in os.environ and not env_file.exists():
    raise ImproperlyConfigured(f"Set TOOLBELT_ENV_FILE to a file of settings: {env_file} is not there.")
# The test environment reads no file: a test run means the same on every machine.
if os.environ.get("TOOLBELT_ENV") != "test":
    env.read_env(env_file)

ENVIRONMENTS = ("production", "demo", "development", "test")
ENVIRONMENT = env.str("TOOLBELT_ENV", default="production")
if ENVIRONMENT not in ENVIRONMENTS:
    raise ImproperlyConfigured(f"Set TOOLBELT_ENV to one of {', '.join(ENVIRONMENTS)}, not {ENVIRONMENT!r}.")

CLOSED = ENVIRONMENT in ("production", "demo")

# Secrets and hosts

DEBUG = env.bool("DEBUG", default=ENVIRONMENT == "development")
SECRET_KEY = env.str("SECRET_KEY", default="" if CLOSED else f"insecure-key-of-the-{ENVIRONMENT}-environment")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=[] if CLOSED else ["localhost", "127.0.0.1", "[::1]", "testserver"]
)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])


def wanting() -> list[str]:
    """What still has to be set before a closed installation may start, as halves of one sentence."""
    wants = []
    if len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 10 or SECRET_KEY.startswith(("replace-", "insecure-")):
        wants.append("SECRET_KEY to at least 50 random characters of its own (.env.example says how)")
    if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
        wants.append("ALLOWED_HOSTS to the host names that this installation answers to")
    if DEBUG:
        wants.append("DEBUG to off")
    return wants


if CLOSED and (wants := wanting()):
    raise ImproperlyConfigured(
        f"Toolbelt runs as {ENVIRONMENT} and needs more settings: set {' and '.join(wants)},"
        " or set TOOLBELT_ENV=development to work on Toolbelt itself."
    )

# Applications

INSTALLED_APPS = [
    "toolbelt",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "axes",
    "csp",
    "django_prometheus",
    "django_structlog",
]
if not CLOSED and importlib.util.find_spec("django_linear_migrations"):
    # A tool for whoever writes migrations, which is whoever has installed what that takes.
    INSTALLED_APPS.append("django_linear_migrations")

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    # Outside of everything that may refuse a request, so that a refusal has its request id too.
    "toolbelt.web.request_ids.RequestMiddleware",
    "toolbelt.api.problems.everywhere",
    "toolbelt.api.limits.agents_share",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "toolbelt.web.frame.htmx_leaves",
    "toolbelt.web.hidden.shown",
    # Every view asks for a login unless it says otherwise: forgetting to ask cannot open a page.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "toolbelt.web.live.Counted",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
    "axes.middleware.AxesMiddleware",
    "toolbelt.web.passwords.BusyMiddleware",
]

ROOT_URLCONF = "toolbelt.urls"
ASGI_APPLICATION = "toolbelt.asgi.application"
WSGI_APPLICATION = "toolbelt.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "toolbelt.web.frame.shown",
            ],
            "builtins": ["template_partials.templatetags.partials", "toolbelt.web.tags"],
        },
    },
]

# Database and cache


def database() -> dict[str, Any]:
    """The one database, set so that concurrent writers wait for each other instead of failing."""
    # Of a scheme that it does not know it tells the whole address, password and all.
    with warnings.catch_warnings(action="ignore"):
        settings: dict[str, Any] = dict(env.db("DATABASE_URL", default="sqlite:///db.sqlite3"))
    options: dict[str, Any] = settings.setdefault("OPTIONS", {})
    engine = settings.get("ENGINE")  # none, if the scheme is unknown or missing
    if engine == "django.db.backends.sqlite3":
        if settings["NAME"] != ":memory:":
            settings["NAME"] = str(BASE_DIR / settings["NAME"])
        options.update(
            # A transaction takes the write lock when it begins: one that read first cannot lose its turn.
            transaction_mode="IMMEDIATE",
            # Whoever waits longer for another writer is told that the database is busy.
            timeout=4,
            # Recursive: or a row that INSERT OR REPLACE takes away would pass the triggers that watch deletions.
            init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA recursive_triggers=ON;",
        )
        # A file, because tests ask from other processes too; one a process, because test runs may overlap.
        settings["TEST"] = {"NAME": f"{tempfile.gettempdir()}/toolbelt-test-{os.getpid()}.sqlite3"}
    elif engine == "django.db.backends.postgresql":
        settings["ENGINE"] = "toolbelt.store.postgresql"
        # A server that is away is noticed in time to say so; one more second is for saying it.
        options.setdefault("connect_timeout", 3)
        options.setdefault("tcp_user_timeout", 4000)
        # A connection that was cut while nobody used it is replaced before it is used.
        settings["CONN_HEALTH_CHECKS"] = True
        if ENVIRONMENT != "test" and (size := env.int("TOOLBELT_DATABASE_POOL", default=10)):
            options["pool"] = {
                "min_size": 1,
                "max_size": size,
                "timeout": 3,
                # Then the next request tries; the pool's own pauses grow to minutes.
                "reconnect_timeout": 3,
                "connection_class": pooling.Connection,
            }
    else:
        raise ImproperlyConfigured("Set DATABASE_URL to an address with sqlite:// or postgres:// in front.")
    return settings


DATABASES = {"default": database()}

if redis_url := env.str("REDIS_URL", default=""):
    CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url}}
    SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# Login

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = ["toolbelt.web.passwords.Argon2PasswordHasher"]
if ENVIRONMENT == "test":
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # tests make many users, all made up
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
AXES_HANDLER = "toolbelt.web.passwords.AxesHandler"  # which limits an address, too, whatever the names
AXES_RESET_ON_SUCCESS = True
# Whoever is locked out waits a quarter of an hour, and no longer for having tried meanwhile.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_TEMPLATE = "locked_out.html"
CSRF_FAILURE_VIEW = "toolbelt.web.frame.csrf_failure"

# What a browser may do

INSECURE_HTTP = env.bool("TOOLBELT_INSECURE_HTTP", default=ENVIRONMENT != "production")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not INSECURE_HTTP
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # probes come from inside, without TLS
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else env.int("TOOLBELT_HSTS_SECONDS", default=365 * 24 * 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = not INSECURE_HTTP
# Preloading is a promise for a whole domain, made by its owner at the browsers' list, not by one application in it.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
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

# The editor of a toolkit sends up to ten fields for a tool with a trigger, and the admin as many for an agent's rows.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# Files, language, time

STATIC_URL = "/static/"
# Production serves what collectstatic put there; elsewhere files are found where they are.
COLLECTED = ENVIRONMENT == "production"
STATIC_ROOT = BASE_DIR / "staticfiles" if COLLECTED else None
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if COLLECTED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not COLLECTED
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_AUTOREFRESH = ENVIRONMENT == "development"

FIXTURE_DIRS = [BASE_DIR / "fixtures"]

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str("TOOLBELT_TIME_ZONE", default="UTC")
try:
    zoneinfo.ZoneInfo(TIME_ZONE)
except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # Europe, say, is a directory of zones
    raise ImproperlyConfigured(
        f"Set TOOLBELT_TIME_ZONE to a zone such as Europe/Berlin, not {TIME_ZONE!r}."
    ) from None

# What Toolbelt itself decides by; `toolbelt.conf` has the defaults and says what each means

if "TOOLBELT_KIND_LOADOUTS" in env:
    TOOLBELT_KIND_LOADOUTS = env.dict("TOOLBELT_KIND_LOADOUTS")
if "TOOLBELT_CONFIRM_OFF_TOOLS" in env:
    TOOLBELT_CONFIRM_OFF_TOOLS = env.int("TOOLBELT_CONFIRM_OFF_TOOLS")
if "TOOLBELT_HIDE_DENIED" in env:
    TOOLBELT_HIDE_DENIED = env.bool("TOOLBELT_HIDE_DENIED")
if "TOOLBELT_METRICS_TOKEN" in env:
    TOOLBELT_METRICS_TOKEN = env.str("TOOLBELT_METRICS_TOKEN")
if "TOOLBELT_PLUGINS_FILE" in env:
    TOOLBELT_PLUGINS_FILE = env.str("TOOLBELT_PLUGINS_FILE")
if "TOOLBELT_PLUGIN_INIT" in env:
    TOOLBELT_PLUGIN_INIT = env.str("TOOLBELT_PLUGIN_INIT")
if "TOOLBELT_SECRETS_DIR" in env:
    TOOLBELT_SECRETS_DIR = env.str("TOOLBELT_SECRETS_DIR")
if "TOOLBELT_CALL_SECONDS" in env:
    TOOLBELT_CALL_SECONDS = env.float("TOOLBELT_CALL_SECONDS")
if "TOOLBELT_CALL_RESULT_BYTES" in env:
    TOOLBELT_CALL_RESULT_BYTES = env.int("TOOLBELT_CALL_RESULT_BYTES")
if "TOOLBELT_CALLS_PER_PLUGIN" in env:
    TOOLBELT_CALLS_PER_PLUGIN = env.int("TOOLBELT_CALLS_PER_PLUGIN")
if "TOOLBELT_RECORD_ARGUMENTS" in env:
    TOOLBELT_RECORD_ARGUMENTS = env.bool("TOOLBELT_RECORD_ARGUMENTS")
if "TOOLBELT_ALLOW_PRIVATE_HTTP" in env:
    TOOLBELT_ALLOW_PRIVATE_HTTP = env.bool("TOOLBELT_ALLOW_PRIVATE_HTTP")
if "TOOLBELT_STDIO_BY_WEB" in env:
    TOOLBELT_STDIO_BY_WEB = env.bool("TOOLBELT_STDIO_BY_WEB")
if "TOOLBELT_WEB_VARIABLES" in env:
    TOOLBELT_WEB_VARIABLES = env.list("TOOLBELT_WEB_VARIABLES")
if "TOOLBELT_API_PER_MINUTE" in env:
    TOOLBELT_API_PER_MINUTE = env.int("TOOLBELT_API_PER_MINUTE")
if "TOOLBELT_API_BODY_BYTES" in env:
    TOOLBELT_API_BODY_BYTES = env.int("TOOLBELT_API_BODY_BYTES")
    # Django takes no body that is larger than this, whatever the API says of it.
    DATA_UPLOAD_MAX_MEMORY_SIZE = max(TOOLBELT_API_BODY_BYTES, global_settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
if "TOOLBELT_API_BODY_DEPTH" in env:
    TOOLBELT_API_BODY_DEPTH = env.int("TOOLBELT_API_BODY_DEPTH")
if "TOOLBELT_STALE_SECONDS" in env:
    TOOLBELT_STALE_SECONDS = env.float("TOOLBELT_STALE_SECONDS")
if "TOOLBELT_REQUESTS_AT_ONCE" in env:
    TOOLBELT_REQUESTS_AT_ONCE = env.int("TOOLBELT_REQUESTS_AT_ONCE")
if "TOOLBELT_BODY_SECONDS" in env:
    TOOLBELT_BODY_SECONDS = env.float("TOOLBELT_BODY_SECONDS")
if "TOOLBELT_COMMAND" in env:
    TOOLBELT_COMMAND = env.str("TOOLBELT_COMMAND")
elif ENVIRONMENT != "test":
    TOOLBELT_COMMAND = command_line.derive(BASE_DIR, prefix=sys.prefix, environ=os.environ)

# Logs

# One line a request: the one that knows the answer.
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
# It would believe any X-Forwarded-For; `toolbelt.web.request_ids` binds the real address.
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
AXES_VERBOSE = False
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_LEVEL = env.str("TOOLBELT_LOG_LEVEL", default="INFO").upper()
if LOG_LEVEL not in LOG_LEVELS:
    raise ImproperlyConfigured(
        f"Set TOOLBELT_LOG_LEVEL to one of {', '.join(LOG_LEVELS)}, not {LOG_LEVEL!r}."
    )
LOGGING = logs.configure(level=LOG_LEVEL, as_json=ENVIRONMENT == "production")
