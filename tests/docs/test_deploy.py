"""Tests of the files in docs/deploy, as far as they can be checked without the programs that read them."""

from __future__ import annotations

import json
import re
import tomllib

import prometheus_client
import pytest
from django.core import management
from django.test import Client

from tests.docs import pages

DEPLOY = pages.ROOT / "docs/deploy"
RUNNING = ("Containerfile", "compose.yaml", "compose.postgresql.yaml", "kubernetes.yaml", "toolbelt.service")


@pytest.mark.django_db
def test_the_grafana_dashboard_uses_only_existing_metrics(client: Client) -> None:
    client.get("/healthz")
    known = {
        f"{metric.name}{suffix}"
        for metric in prometheus_client.REGISTRY.collect()
        for suffix in {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(
            metric.type, ("",)
        )
    }
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    used = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:toolbelt|django)_\w+", target["expr"])
    }
    assert used
    assert used <= known


def files(*names: str) -> str:
    return "\n".join((DEPLOY / name).read_text() for name in names)


def test_the_image_copies_existing_files_and_the_build_context_has_no_others() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", files("Containerfile"), re.MULTILINE)
    copied = " ".join(lines).split()
    assert copied
    for source in copied:
        assert (pages.ROOT / source).exists(), source
    sent = [line[1:] for line in (pages.ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    assert sorted(sent) == sorted(copied)


def test_the_image_has_everything_that_the_wheel_is_built_from() -> None:
    """No container engine is needed for this: `scripts/container.py` builds the file without one, and runs it."""
    project = tomllib.loads((pages.ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]}
    needed |= {*project["project"]["license-files"]}
    instructions = files("Containerfile").replace("\\\n", " ").splitlines()
    copied = {source for line in instructions if line.startswith("COPY ") for source in line.split()[1:-1]}
    assert needed - copied == set()
    stages = re.findall(r"^FROM \S+ AS (\w+)$", files("Containerfile"), re.MULTILINE)
    assert {source.partition("=")[2] for source in copied if source.startswith("--from=")} <= {*stages}


def test_every_toolbelt_command_in_a_file_exists() -> None:
    named = set(re.findall(r"toolbelt[\"']?,? [\"']?(migrate|serve|user|collect\w+)", files(*RUNNING)))
    assert {"migrate", "serve", "user", "collectstatic"} == named
    assert named <= set(management.get_commands())


@pytest.mark.django_db
@pytest.mark.parametrize("path", sorted(set(re.findall(r" path: (/\w+)", files("kubernetes.yaml")))))
def test_the_kubernetes_probes_request_paths_that_answer(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200


def test_every_environment_variable_in_a_file_is_documented() -> None:
    text = files(*RUNNING)
    named = set(
        re.findall(r"\b(TOOLBELT_[A-Z_]+|[A-Z]+_URL|ALLOWED_HOSTS|SECRET_KEY|FORWARDED_ALLOW_IPS)\b", text)
    )
    documented = (pages.REFERENCE / "environment.md").read_text()
    assert {name for name in named if f"`{name}`" not in documented} == set()
