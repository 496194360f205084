"""Tests that the demo is loaded once, and that later runs keep its changes."""

import io
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.core import management
from django.core.serializers import base

from tests import factories
from toolbelt import models
from toolbelt.core import errors
from toolbelt.management import demo_month

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_fixture(settings, tmp_path) -> None:
    """Replace the demo with two rows: these tests check when it is loaded, not its content."""
    (tmp_path / "demo.yaml").write_text(
        "- {model: auth.group, fields: {name: loaded}}\n- {model: toolbelt.agent, fields: {key: assistant}}\n"
    )
    settings.FIXTURE_DIRS = [tmp_path]


@pytest.fixture(autouse=True)
def months(monkeypatch) -> list[dict[str, object]]:
    """Record the requested months of activity instead of generating them: this demo has no agents."""
    requested: list[dict[str, object]] = []

    def make(**options: object) -> demo_month.Activity:
        repository = os.environ.get("DEMO_REPOSITORY", "")
        requested.append(options | {"has_repository": repository != "" and Path(repository).exists()})
        return demo_month.Activity(changes=0, calls=0)

    monkeypatch.setattr(demo_month, "make", make)
    return requested


def demo(**options: Any) -> str:
    out = io.StringIO()
    management.call_command("demo", stdout=out, **options)
    return out.getvalue()


def test_the_first_run_loads_the_demo_and_prints_url_and_login() -> None:
    printed = demo(address="http://127.0.0.1:8001/", password="given")
    operator = get_user_model().objects.get(username="operator")
    assert operator.is_superuser
    assert operator.check_password("given")
    assert "http://127.0.0.1:8001/" in printed
    assert "operator, password given" in printed
    assert auth.Group.objects.filter(name="loaded").exists()


def test_only_the_first_run_generates_a_month_of_activity(months) -> None:
    demo(password="given")
    demo(password="given")
    assert [(month["days"], month["force"]) for month in months] == [(30, False)]


def test_a_password_is_generated_if_none_is_given(monkeypatch) -> None:
    monkeypatch.delenv("DEMO_PASSWORD", raising=False)
    password = demo().partition("password ")[2].split()[0]
    assert get_user_model().objects.get(username="operator").check_password(password)


def test_a_later_run_keeps_changes() -> None:
    demo(password="given")
    auth.Group.objects.all().delete()
    printed = demo(password="given")
    assert "Nothing was loaded: this database has a configuration already" in printed
    assert "operator, password given" in printed
    operator = get_user_model().objects.get(username="operator")
    operator.set_password("changed")
    operator.save()
    assert "the one that this database had" in demo(password="given")
    assert not auth.Group.objects.exists()


def test_the_demo_is_loaded_even_if_generating_activity_is_refused(monkeypatch) -> None:
    def refuse(**options: object) -> None:
        raise errors.Refused("There are calls already.")

    monkeypatch.setattr(demo_month, "make", refuse)
    complaints = io.StringIO()
    assert "Login" in demo(stderr=complaints)
    assert "There are calls already." in complaints.getvalue()


def test_a_demo_that_fails_to_load_stores_nothing(tmp_path) -> None:
    (tmp_path / "demo.yaml").write_text("- {model: auth.group, fields: {name: [}\n")
    with pytest.raises(base.DeserializationError):
        demo()
    assert not get_user_model().objects.exists()


def test_a_database_with_a_configuration_is_refused_and_left_unchanged() -> None:
    factories.plugin("git", title="Ours")
    with pytest.raises(management.CommandError, match="not empty"):
        demo()
    assert not auth.Group.objects.filter(name="loaded").exists()
    assert models.Plugin.objects.get().title == "Ours"


def test_loading_the_fixture_over_a_configuration_requires_overwrite() -> None:
    factories.plugin("git")
    with pytest.raises(management.CommandError, match="--overwrite"):
        management.call_command("loaddata", "demo", verbosity=0)
    assert not auth.Group.objects.filter(name="loaded").exists()
    management.call_command("loaddata", "demo", verbosity=0, overwrite=True)
    assert auth.Group.objects.filter(name="loaded").exists()


def test_loading_the_fixture_says_how_to_serve_it() -> None:
    out = io.StringIO()
    management.call_command("loaddata", "demo", stdout=out)
    assert "manage.py user create NAME --role administrator`, and serve it with `" in out.getvalue()
    get_user_model().objects.create_superuser("mia", password="given")
    management.call_command("loaddata", "demo", stdout=out, overwrite=True)
    assert "To use the demo, serve it with `" in out.getvalue()


def test_a_production_installation_refuses_the_demo(settings) -> None:
    settings.ENVIRONMENT = "production"
    for options in ({}, {"overwrite": True}):
        with pytest.raises(management.CommandError, match=r"a production installation.*run `make demo`"):
            management.call_command("loaddata", "demo", verbosity=0, **options)
    assert not auth.Group.objects.filter(name="loaded").exists()


def test_the_demo_repository_is_created_once_before_activity_is_generated(
    tmp_path, monkeypatch, months
) -> None:
    repository = tmp_path / "demo-repository"
    monkeypatch.setenv("DEMO_REPOSITORY", str(repository))
    demo()
    log = ["git", "-C", str(repository), "log", "--format=%an %s", "main"]
    assert subprocess.run(log, check=True, capture_output=True, text=True).stdout == "Demo Begin\n"
    (repository / "README.md").write_text("Changed")
    demo()
    assert (repository / "README.md").read_text() == "Changed"
    assert [month["has_repository"] for month in months] == [True]


def test_the_demo_works_without_git(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DEMO_REPOSITORY", str(tmp_path / "demo-repository"))
    monkeypatch.setenv("PATH", str(tmp_path))
    errors = io.StringIO()
    assert "Login" in demo(stderr=errors)
    assert "git is missing" in errors.getvalue()
    assert not (tmp_path / "demo-repository").exists()


def test_the_output_explains_how_to_run_the_demos_tools(settings) -> None:
    settings.TOOLBELT_PLUGINS_FILE = ""
    assert "TOOLBELT_PLUGINS_FILE=fixtures/demo/plugins.yaml" in demo()
    settings.TOOLBELT_PLUGINS_FILE = "fixtures/demo/plugins.yaml"
    assert "TOOLBELT_PLUGINS_FILE" not in demo()


@pytest.mark.parametrize("name", ["mia", "operator"])
def test_an_empty_installation_with_users_gets_no_additional_login(name: str) -> None:
    get_user_model().objects.create_superuser(name, password="given")
    printed = demo()
    assert "Loading the demo" in printed
    assert "the one that this database had" in printed
    [user] = get_user_model().objects.all()
    assert (user.username, user.check_password("given")) == (name, True)
    assert auth.Group.objects.filter(name="loaded").exists()
