"""Tests of the settings that a process reads from its environment."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from django.core import checks

from tests import identity_provider
from toolbelt import conf
from toolbelt.settings import logs

ROOT = Path(__file__).resolve().parent.parent
KEY = "x7Jq2Lr9Vb4Nc6Zt1Wd8Ky3Hm5Gf0PsAeRuTiYoQlBnMvCxZkSdFgH"
GOOD = {"SECRET_KEY": KEY, "ALLOWED_HOSTS": "toolbelt.example.com"}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py with only these settings."""
    return python("manage.py", *arguments, **environment)


def python(*arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with only these settings."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TOOLBELT_ENV_FILE": os.devnull, **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
    )


# Runs manage.py once for each change of the environment, in a process that has imported Django already.
EACH = """
import json, os, runpy, sys
import django.core.management, environ, structlog
sys.argv = ["manage.py", "check"]
for change in json.loads(sys.stdin.read()):
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(writing, 2)
        os.environ.update(change)
        runpy.run_path("manage.py", run_name="__main__")
        sys.exit(0)
    os.close(writing)
    with open(reading) as errors:
        reported = errors.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, reported]), flush=True)
"""


# Changes of a valid environment that make it invalid, and the variable that is reported.
INVALID: list[tuple[dict[str, str], str]] = [
    ({"SECRET_KEY": ""}, "SECRET_KEY"),
    ({"SECRET_KEY": KEY[:49]}, "SECRET_KEY"),
    ({"SECRET_KEY": "ab" * 40}, "SECRET_KEY"),
    ({"ALLOWED_HOSTS": ""}, "ALLOWED_HOSTS"),
    ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
    ({"DEBUG": "on"}, "DEBUG"),
    ({"TOOLBELT_ENV": "staging"}, "TOOLBELT_ENV"),
    ({"DATABASE_URL": "mysql://127.0.0.1/toolbelt"}, "DATABASE_URL"),
    ({"DATABASE_URL": "toolbelt.sqlite3"}, "DATABASE_URL"),
    ({"DATABASE_URL": "postgres://toolbelt:hunter/2@127.0.0.1/toolbelt"}, "DATABASE_URL"),
    ({"DATABASE_URL": "postgres://127.0.0.1:port/toolbelt"}, "DATABASE_URL"),
    ({"DATABASE_URL": "postgres://127.0.0.1"}, "DATABASE_URL"),
    ({"TOOLBELT_DATABASE_POOL": "ten", "DATABASE_URL": "postgres://x/y"}, "TOOLBELT_DATABASE_POOL"),
    ({"TOOLBELT_CALL_SECONDS": "abc"}, "TOOLBELT_CALL_SECONDS"),
    ({"TOOLBELT_KIND_LOADOUTS": "abc"}, "TOOLBELT_KIND_LOADOUTS"),
    ({"TOOLBELT_LOG_LEVEL": "loud"}, "TOOLBELT_LOG_LEVEL"),
    ({"TOOLBELT_TIME_ZONE": "Mars"}, "TOOLBELT_TIME_ZONE"),
    ({"TOOLBELT_TIME_ZONE": "Europe"}, "TOOLBELT_TIME_ZONE"),
    ({"TOOLBELT_ENV_FILE": "nowhere.env"}, "TOOLBELT_ENV_FILE"),
]


def test_an_invalid_production_setting_is_reported_in_one_line(subtests) -> None:
    run = python("-c", EACH, given=json.dumps([change for change, _ in INVALID]), **GOOD)
    reports = run.stdout.splitlines()
    assert len(reports) == len(INVALID), run.stderr
    for (change, variable), line in zip(INVALID, reports, strict=True):
        with subtests.test(**change):
            code, report = json.loads(line)
            assert (code, report.count("\n")) == (1, 1), report
            assert f"{variable} to " in report
            # Part of a URL can be its password.
            assert "hunter" not in report


def test_redis_holds_no_login() -> None:
    code = "from toolbelt import settings as s; print(s.CACHES['default']['BACKEND'], s.SESSION_ENGINE)"
    run = python("-c", code, REDIS_URL="redis://127.0.0.1", **GOOD)
    assert run.stdout.split() == [
        "django_redis.cache.RedisCache",
        "django.contrib.sessions.backends.db",
    ], run.stderr


def test_redis_without_its_client_names_the_package_to_install() -> None:
    without = (
        "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n: None if 'redis' in n else f(n)"
    )
    code = f"{without}; import toolbelt.settings"
    run = python("-c", code, REDIS_URL="redis://127.0.0.1", **GOOD)
    assert "REDIS_URL needs" in run.stderr
    assert "pip install 'toolbelt-switchboard[redis]'" in run.stderr


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, "PRODUCTION red"),
        ({"TOOLBELT_ENV": "demo"}, "DEMO gray"),
        ({"TOOLBELT_ENVIRONMENT_NAME": "Staging", "TOOLBELT_ENVIRONMENT_COLOR": "amber"}, "Staging amber"),
        ({"TOOLBELT_ENVIRONMENT_NAME": ""}, " red"),
    ],
)
def test_the_environment_name_and_color_have_configurable_defaults(change, shown) -> None:
    code = "from toolbelt import conf; print(conf.ENVIRONMENT_NAME, conf.ENVIRONMENT_COLOR)"
    run = python("-c", code, DJANGO_SETTINGS_MODULE="toolbelt.settings", **GOOD | change)
    assert run.stdout.strip("\n") == shown, run.stderr


def test_the_secret_key_of_the_example_file_is_refused() -> None:
    run = manage("check", TOOLBELT_ENV_FILE=".env.example")
    assert "SECRET_KEY to " in run.stderr


def test_insecure_http_and_trusting_all_proxies_give_warnings() -> None:
    """`scripts/test.sh` checks that there is no warning without them."""
    unsafe = {"TOOLBELT_INSECURE_HTTP": "on", "FORWARDED_ALLOW_IPS": "*"}
    run = manage("check", "--deploy", "--fail-level", "WARNING", **GOOD, **unsafe)
    assert run.returncode == 1
    assert set(re.findall(r"toolbelt\.W\d+", run.stderr)) == {"toolbelt.W001", "toolbelt.W007"}


def test_an_invalid_setting_is_reported_by_a_check(settings) -> None:
    settings.TOOLBELT_KIND_LOADOUTS = {"stroll": "research"}
    messages = [message for message in checks.run_checks() if message.id == "toolbelt.E001"]
    assert [message.msg.partition(" ")[0] for message in messages] == ["TOOLBELT_KIND_LOADOUTS"]


def test_kinds_missing_in_the_setting_keep_their_default_loadout(settings) -> None:
    settings.TOOLBELT_KIND_LOADOUTS = {"task": "full"}
    assert (conf.KIND_LOADOUTS["task"], conf.KIND_LOADOUTS["explore"]) == ("full", "research")


def test_an_unknown_setting_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NO_SUCH"):
        conf.NO_SUCH  # noqa: B018


def test_secrets_and_query_strings_are_not_logged() -> None:
    event = {
        "password": "p",
        "api_token": "t",
        "tokens": 12,
        "tool_key": "git__status",
        "request": "GET /a?q=p",
    }
    assert logs.withhold(None, "info", event) == {
        "password": "[withheld]",
        "api_token": "[withheld]",
        "tokens": 12,
        "tool_key": "git__status",
        "request": "GET /a",
    }


@pytest.mark.parametrize(
    ("environment", "is_terminal", "is_json"),
    [("production", False, True), ("production", True, False), ("development", False, False)],
)
def test_logs_are_json_in_production_unless_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, environment: str, is_terminal: bool, is_json: bool
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal(is_terminal))
    assert logs.is_json(environment) is is_json


class Terminal(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_a_logged_text_does_not_control_the_terminal() -> None:
    before = structlog.get_config()
    configured = logs.configure(level="INFO", as_json=False)["formatters"]["entry"]
    structlog.configure(**before)
    formatter = logs.Formatter(**{name: value for name, value in configured.items() if name != "()"})
    record = logging.LogRecord("x", logging.INFO, "", 1, "a\x1b[2Jb \u202e", None, None)
    line = formatter.format(record)
    assert "\x1b" not in line
    assert "a[U+001B][2Jb [U+202E]" in line


def test_commands_import_neither_the_pages_nor_what_they_do_not_use() -> None:
    late = (
        "ninja",
        "fido2",
        "qrcode",
        "numpy",
        "httpx",
        "psycopg",
        "toolbelt.web.urls",
        "toolbelt.api.application",
    )
    run = python(
        "-c",
        "import sys, django; from django.core.management import call_command, CommandError; django.setup()\n"
        "try: call_command('token', 'revoke', 'tb_none')\n"
        "except Exception: pass\n"
        f"print([name for name in {late!r} if name in sys.modules])",
        TOOLBELT_ENV="test",
        DJANGO_SETTINGS_MODULE="toolbelt.settings",
        DATABASE_URL="sqlite://:memory:",
        PYTHONPATH=str(ROOT),
    )
    assert run.stdout.strip().splitlines()[-1:] == ["[]"], run.stderr


def test_without_a_provider_nothing_of_its_library_is_imported() -> None:
    run = python(
        "-c",
        "import sys, django; django.setup()\n"
        "import toolbelt.asgi, toolbelt.urls\n"
        "from django.test import Client\n"
        "print(Client().get('/login/provider/').status_code, 'allauth.socialaccount.models' in sys.modules)",
        TOOLBELT_ENV="development",
        DJANGO_SETTINGS_MODULE="toolbelt.settings",
        DATABASE_URL="sqlite://:memory:",
        PYTHONPATH=str(ROOT),
    )
    assert run.stdout.strip().splitlines()[-1:] == ["404 False"], run.stderr


@pytest.mark.slow
def test_environment_variables_alone_let_people_log_in_with_a_provider(tmp_path: Path) -> None:
    steps = """
import django, requests; django.setup()
from django.core.management import call_command
from django.test import Client
from toolbelt.control.people import users
call_command("migrate", verbosity=0); call_command("check")
browser = Client()
there = browser.get("/login/provider/", {"next": "/agents/"})
back = requests.get(there["Location"], allow_redirects=False).headers["Location"]
print(browser.get(back)["Location"], users.find("eve").roles, browser.get("/agents/").status_code)
"""
    with identity_provider.serving_provider() as provider:
        provider.person = {"sub": "1", "preferred_username": "eve", "roles": ["c0ffee-1"]}
        run = python(
            "-c",
            steps,
            TOOLBELT_ENV="development",
            DJANGO_SETTINGS_MODULE="toolbelt.settings",
            DATABASE_URL=f"sqlite:///{tmp_path / 'db.sqlite3'}",
            PYTHONPATH=str(ROOT),
            TOOLBELT_SIGN_IN_ISSUER=provider.issuer,
            TOOLBELT_SIGN_IN_CLIENT_ID=identity_provider.CLIENT_ID,
            TOOLBELT_SIGN_IN_CLIENT_SECRET=identity_provider.CLIENT_SECRET,
            TOOLBELT_SIGN_IN_GROUPS_CLAIM="roles",
            TOOLBELT_SIGN_IN_ROLES="c0ffee-1=viewer,c0ffee-2=administrator",
            TOOLBELT_LOCAL_LOGIN="superusers",
        )
    assert run.stdout.strip().splitlines()[-1:] == ["/agents/ ['viewer'] 200"], run.stderr


@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [
        ("ISSUER", "https://login.example.com", "toolbelt.E002"),
        ("ISSUER", "http://login.example.com", "toolbelt.E001"),
        ("ROLES", "admins=root", "toolbelt.E001"),
    ],
)
def test_an_incomplete_or_unsafe_provider_is_reported_by_a_check(
    setting: str, value: str, error: str
) -> None:
    run = manage("check", TOOLBELT_ENV="development", **{f"TOOLBELT_SIGN_IN_{setting}": value})
    assert run.returncode == 1
    assert error in run.stderr


def test_a_token_in_a_url_is_not_logged() -> None:
    event = {"request": f"DELETE /api/v1/tokens/tb_01234567{'x' * 49}"}
    assert logs.withhold(None, "info", event) == {"request": "DELETE /api/v1/tokens/tb_01234567[withheld]"}


def test_the_example_file_documents_every_variable() -> None:
    source = (ROOT / "toolbelt/settings/__init__.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    read |= {f"TOOLBELT_{name}" for name in conf.SETTINGS}
    documented = set(re.findall(r"^(?:# )?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert len(read) > 15
    assert read - documented == set()


def test_only_misspelled_settings_are_reported_not_variables_of_other_programs() -> None:
    read = {
        f"TOOLBELT_{name}"
        for file in (ROOT / "toolbelt").glob("settings/*.py")
        for name in re.findall(r'"TOOLBELT_([A-Z_]+)"', file.read_text(encoding="utf-8"))
    }
    others = {"TOOLBELT_TOKEN", "TOOLBELT_ADDRESS", "TOOLBELT_AGENT", "TOOLBELT_OPERATOR_TOKEN", "PATH"}
    assert conf.misspelled_variables(read | others | {"TOOLBELT_SECRET_KB__API_KEY", "TOOLBELT_HOME"}) == []
    assert conf.misspelled_variables({"TOOLBELT_LOGLEVEL"}) == [("TOOLBELT_LOGLEVEL", "TOOLBELT_LOG_LEVEL")]
