"""Tests that migrations keep stored rows, from whichever migration the upgrade starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.db import models as orm
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from pytest_django import DjangoDbBlocker

from tests import rows
from tests.installation import Installation, postgresql
from toolbelt import models
from toolbelt.core import catalog, connections, tool_versions, variables
from toolbelt.runtime import surfaces
from toolbelt.store import catalog as store
from toolbelt.store import clock, revisions, triggers

# Migrates to the migration of this number, and returns the models as they are there.
At = Callable[[str], Any]


def columns(model: type[orm.Model], key: object) -> dict[str, Any]:
    return dict(model._base_manager.values().get(pk=key))


def begin_with_the_first_migration() -> None:
    """Create the first tables: an empty database would get all migrations as one, which replaces them."""
    first = MigrationLoader(connection).disk_migrations["toolbelt", "0001_initial"]
    with connection.schema_editor() as editor:
        first.apply(ProjectState(), editor)
    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    recorder.record_applied("toolbelt", "0001_initial")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of an empty database."""
    if request.param == "sqlite":
        yield "sqlite://:memory:"
        return
    with postgresql() as [new]:
        yield new


@pytest.mark.slow
def test_rows_of_every_earlier_migration_survive_all_later_ones(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker, address: str
) -> None:
    with django_db_blocker.unblock(), Installation(tmp_path, address).used():
        for app in ("auth", "admin", "sessions", "axes", "account", "mfa", "socialaccount"):
            call_command("migrate", app, verbosity=0)
        begin_with_the_first_migration()
        loader = MigrationExecutor(connection).loader
        [newest] = loader.graph.leaf_nodes("toolbelt")
        names = [name for app, name in loader.graph.forwards_plan(newest) if app == "toolbelt"]
        # The rows of each migration, with the columns that they have at that migration.
        stored: dict[str, list[tuple[str, object, dict[str, Any]]]] = {}
        executor, state = MigrationExecutor(connection), None
        for name in names:
            # Once the last one is applied, the graph has the one that replaces them.
            earlier = executor.loader.project_state(("toolbelt", name)).apps
            state = executor.migrate([("toolbelt", name)], state=state)
            executor.loader.build_graph()
            stored[name] = [
                (row._meta.label, row.pk, columns(type(row), row.pk))
                for row in rows.insert(earlier, {"toolbelt", "auth"}, name[:4])
            ]
        assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
        # It does what follows the last migration.
        call_command("migrate", verbosity=0)
        own = {model._meta.label for model in apps.get_app_config("toolbelt").get_models()}
        filled = {label for label, _, _ in stored[names[-1]]}
        assert own - filled == {"toolbelt.Revision", "toolbelt.AgentRevision"}
        for name in names:
            for label, key, before in stored[name]:
                after = columns(apps.get_model(label), key)
                if label == "toolbelt.AuditEntry" and name < "0029":
                    # Of an observation, the migration says by which plugin it is, and who asked.
                    after["actor"] = after["asked_by"] or after["actor"]
                assert {column: after[column] for column in before} == before, (name, label)
        # The triggers exist, and the rows are accepted when they are read.
        assert triggers.missing(connection) == ()
        number = revisions.number()
        for agent in models.Agent.objects.all():
            surfaces.ask(agent.key)
            agent.switches.update(on=False)
        assert revisions.number() == number + len(names)
        # 0019 sets in_code for plugins of installed code, which had no server. Later rows have it explicitly.
        assert {*models.Plugin.objects.filter(in_code=True).values_list("name", flat=True)} == {
            f"name_{name[:4]}" for name in names if not "0003" <= name < "0019"
        }


def test_each_migration_converts_what_was_stored(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker, address: str
) -> None:
    def at(number: str) -> Any:
        call_command("migrate", "toolbelt", number, verbosity=0)
        loader = MigrationExecutor(connection).loader
        [name] = [name for app, name in loader.graph.nodes if app == "toolbelt" and name.startswith(number)]
        return loader.project_state(("toolbelt", name)).apps

    # One after the other in one database, because each of the earlier migrations takes a moment.
    with django_db_blocker.unblock(), Installation(tmp_path, address).used():
        begin_with_the_first_migration()
        migration_0026_marks_versions_that_were_rejected_earlier(at)
        migration_0028_renames_the_list_and_filters_of_saved_views(at)
        migration_0029_says_who_observed_and_who_asked(at)
        migration_0031_names_who_issued_a_token_from_the_audit_log(at)
        migration_0032_numbers_the_hashes_of_approvals(at)
        migration_0039_keeps_the_meaning_of_command_lines(at)
        migration_0071_ends_logins_without_a_row(at)
        call_command("migrate", verbosity=0)
        stored = store.load().tools
        assert [
            key for key in stored if key.startswith("files__") and tool_versions.is_changed(stored[key])
        ] == []
        assert tool_versions.is_changed(stored["held"])


OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64
REJECTION = {"before": {"approved": OLD}, "after": {"approved": NEW, "blocked": True}}
# The audit log of each tool, oldest first. All tools are now blocked with the approved version NEW.
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "rejected_as_changed": [REJECTION],
    "rejected_as_new": [
        {"action": "tool.create", "after": {"description": "x"}},
        {"before": {"seen": False}, "after": {"approved": NEW, "blocked": True}},
        {"before": {"title": ""}, "after": {"title": "X"}},
    ],
    "approved_then_blocked": [
        {"before": {"approved": OLD}, "after": {"approved": NEW}},
        {"before": {}, "after": {"blocked": True}},
    ],
    "rejected_unblocked_and_blocked_again": [
        REJECTION,
        {"before": {"blocked": True}, "after": {}},
        {"before": {}, "after": {"blocked": True}},
    ],
    "imported": [{**REJECTION, "via": "import"}],
    "unknown": [],
}


def migration_0026_marks_versions_that_were_rejected_earlier(at: At) -> None:
    before = at("0025")
    earlier, log = (before.get_model("toolbelt", name).objects for name in ("Tool", "AuditEntry"))
    for key, history in HISTORIES.items():
        earlier.create(key=key, approved=NEW, blocked=True)
        for entry in history:
            fields = {"action": "tool.change", "actor": "olive", "via": "screen", **entry}
            log.create(subject_kind="tool", subject_key=key, **fields)
    earlier.create(key="available", approved=NEW)

    tools = at("0026").get_model("toolbelt", "Tool").objects
    marked = tools.filter(approved=f"rejected:{NEW}").values_list("key", flat=True)
    assert set(marked) == {"rejected_as_changed", "rejected_as_new"}
    assert tools.filter(approved=NEW).count() == len(HISTORIES) - 1


def migration_0039_keeps_the_meaning_of_command_lines(at: At) -> None:
    words = ["--dir", "${DATA_DIR}", "$${X}", "$HOME", "plain"]
    before = {"command": "${A}/run", "args": words, "cwd": "${B}", "env": {"C": "${C}"}}
    at("0038").get_model("toolbelt", "Plugin").objects.create(name="lines", upstream=before)

    stored = at("0039").get_model("toolbelt", "Plugin").objects.get(name="lines")
    now = connections.of(stored.upstream or {})
    assert now is not None
    filled = now.filled(lambda text: variables.fill(text, {"C": "c"})[0])
    assert (filled.command, [*filled.args], filled.cwd, filled.env) == (
        "${A}/run",
        words,
        "${B}",
        {"C": "c"},
    )

    assert at("0038").get_model("toolbelt", "Plugin").objects.get(name="lines").upstream == before


def migration_0028_renames_the_list_and_filters_of_saved_views(at: At) -> None:
    before = at("0027")
    user = before.get_model("auth", "User").objects.create(username="olive")
    views = before.get_model("toolbelt", "SavedView").objects
    earlier = {
        "changes": "via=api",
        "tools": "q=a&state=stopped",
        "toolkits": "show=stopped",
        "calls": "q=stopped",
    }
    for page, query in earlier.items():
        views.create(user=user, page=page, name="Mine", query=query)
    renamed = at("0028").get_model("toolbelt", "SavedView").objects
    assert dict(renamed.values_list("page", "query")) == {
        "audit_log": "via=api",
        "tools": "q=a&state=blocked",
        "toolkits": "show=blocked",
        "calls": "q=stopped",
    }
    at("0027")
    assert dict(views.values_list("page", "query")) == earlier


LISTED = "as the server lists it"
# Entries by their key: what they were, and the actor, its kind and who asked afterwards.
ACTORS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "pressed": (
        {
            "actor": "olive",
            "via": "screen",
            "reason": LISTED,
            "subject_kind": "tool",
            "subject_key": "fs__read",
        },
        ("files", "server", "olive"),
    ),
    "found": (
        {
            "actor": "toolbelt",
            "via": "system",
            "reason": LISTED,
            "subject_kind": "tool",
            "subject_key": "fs__read",
        },
        ("files", "server", ""),
    ),
    "failed": (
        {
            "actor": "toolbelt",
            "via": "system",
            "reason": "Exit code 1.",
            "subject_kind": "plugin",
            "subject_key": "kb",
            "action": "plugin.change",
            "after": {"status": "failed"},
        },
        ("kb", "program", ""),
    ),
    "ended": ({"actor": "system", "via": "system", "action": "switch.end"}, ("system", "clock", "")),
    "by agent": ({"actor": "agent:ada", "via": "api"}, ("agent:ada", "agent", "")),
    "by token": ({"actor": "olive", "via": "api"}, ("olive", "token", "")),
    "by person": ({"actor": "toolbelt", "via": "screen"}, ("toolbelt", "person", "")),
    "approved": (
        {"actor": "olive", "via": "screen", "subject_kind": "tool", "subject_key": "fs__read"},
        ("olive", "person", ""),
    ),
}


def migration_0029_says_who_observed_and_who_asked(at: At) -> None:
    earlier = at("0028")
    plugins, tools, log = (
        earlier.get_model("toolbelt", name).objects for name in ("Plugin", "Tool", "AuditEntry")
    )
    files = plugins.create(name="files", namespace="fs", upstream={"url": "https://files.example"})
    plugins.create(name="kb", namespace="kb")
    tools.create(key="fs__read", plugin=files)
    before = {}
    for key, (entry, _) in ACTORS.items():
        defaults = {"action": "tool.change", "subject_kind": "agent", "subject_key": "ada"}
        log.create(key=key, **(defaults | entry))
        before[key] = entry["actor"]

    entries = at("0029").get_model("toolbelt", "AuditEntry").objects.exclude(key="")
    migrated = entries.values_list("key", "actor", "actor_kind", "asked_by")
    assert {key: tuple(actor) for key, *actor in migrated} == {
        key: expected for key, (_, expected) in ACTORS.items()
    }
    at("0028")
    assert dict(log.exclude(key="").values_list("key", "actor")) == before


def migration_0031_names_who_issued_a_token_from_the_audit_log(at: At) -> None:
    earlier = at("0030")
    ada = earlier.get_model("toolbelt", "Agent").objects.create(key="ada")
    for prefix in ("tb_known", "tb_unknown"):
        earlier.get_model("toolbelt", "ApiToken").objects.create(prefix=prefix, digest=prefix, agent=ada)
    earlier.get_model("toolbelt", "AuditEntry").objects.create(
        action="token.issue", subject_kind="token", subject_key="tb_known", actor="olive", via="screen"
    )
    tokens = at("0031").get_model("toolbelt", "ApiToken").objects
    assert dict(tokens.values_list("prefix", "issued_by")) == {
        "tb_known": "olive",
        "tb_unknown": "",
    }
    at("0030")


def migration_0032_numbers_the_hashes_of_approvals(at: At) -> None:
    earlier = at("0031").get_model("toolbelt", "Tool")
    for number in range(500):
        value = catalog.Tool(key=f"files__t{number}", description=f"Tool {number}.")
        earlier.objects.create(
            key=value.key,
            description=value.description,
            approved=tool_versions.unnumbered_version(value),
        )
    earlier.objects.create(key="held", description="New.", approved=OLD)

    tools = at("0032").get_model("toolbelt", "Tool").objects
    assert tools.filter(approved__startswith="2:sha256:").count() == 500


def migration_0071_ends_logins_without_a_row(at: At) -> None:
    call_command("migrate", "sessions", verbosity=0)
    earlier = at("0069")
    for key in ("noted", "idle"):
        Session.objects.create(session_key=key, session_data="", expire_date=clock.now())
    ada = earlier.get_model("auth", "User").objects.create(username="ada")
    now = {"since": clock.now(), "last_used": clock.now()}
    earlier.get_model("toolbelt", "Login").objects.create(user=ada, session_key="noted", **now)
    at("0071")
    assert [*Session.objects.values_list("session_key", flat=True)] == ["noted"]
