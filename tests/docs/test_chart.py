"""Tests that the Helm chart is consistent, and makes the same objects as the plain manifests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
import yaml

import toolbelt
from tests.docs import pages

DEPLOY = pages.ROOT / "docs/deploy"
CHART = DEPLOY / "chart"
TEMPLATES = "\n".join(file.read_text() for file in sorted((CHART / "templates").iterdir()))
MANIFESTS = (DEPLOY / "kubernetes.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
# The chart refers to the Secret by name, and sets the ConfigMap's variables itself.
ONLY_IN_MANIFESTS = {"Secret", "ConfigMap"}


def names(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the name of each value, such as image.tag; a mapping that is passed on whole counts as one value."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and name not in ("resources", "ingress.annotations"):
            yield from names(value, f"{name}.")
        else:
            yield name


def test_the_schema_accepts_the_default_values_and_rejects_invalid_values() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    for wrong in ({"replica": 2}, {"ingress": {"host": "x"}}, {"host": "https://x"}, {"workers": 0}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**VALUES, **wrong}, SCHEMA)


def test_the_templates_use_every_value_and_no_undefined_value() -> None:
    used = set(re.findall(r"\.Values\.([\w.]+)", TEMPLATES))
    assert used == set(names(VALUES))


def test_the_chart_has_toolbelts_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (toolbelt.__version__, toolbelt.__version__)


def test_the_ingress_and_nginx_allow_the_same_body_size() -> None:
    allowed = re.search(r"client_max_body_size (\w+);", (DEPLOY / "nginx.conf").read_text())
    assert allowed is not None
    assert VALUES["ingress"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == allowed[1]


def fixed_lines(text: str) -> set[str]:
    """Return the lines with a literal number, name or list."""
    lines = (line.strip().removeprefix("- ") for line in text.splitlines())
    return {line for line in lines if re.match(r"[\w./-]+: [^{#]", line) and "{{" not in line}


def test_the_chart_and_the_manifests_have_the_same_fixed_lines() -> None:
    own = [
        manifest
        for manifest in MANIFESTS.split("\n---\n")
        if yaml.safe_load(manifest)["kind"] in ONLY_IN_MANIFESTS
    ]
    manifests = fixed_lines(
        "\n".join(manifest for manifest in MANIFESTS.split("\n---\n") if manifest not in own)
    )
    defaults = fixed_lines((CHART / "values.yaml").read_text())
    in_values = {
        'args: [toolbelt, serve, --host, 0.0.0.0, --workers, "2"]',
        "averageUtilization: 70",
        "image: registry.example.com/toolbelt:0.1.0",
        "name: toolbelt-migrate",
        "path: /healthz",
        "path: /readyz",
        "value: toolbelt.example.com",
    }
    assert manifests - fixed_lines(TEMPLATES) - defaults == in_values
    ingress_and_hook = {
        "apiVersion: networking.k8s.io/v1",
        "helm.sh/hook: pre-install,pre-upgrade",
        "helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded",
        "kind: Ingress",
        "name: ALLOWED_HOSTS",
        "name: FORWARDED_ALLOW_IPS",
        "path: /",
        "pathType: Prefix",
    }
    assert fixed_lines(TEMPLATES) - manifests == ingress_and_hook


def comparable(text: str) -> dict[str, Any]:
    """Return the spec of each kind of object, without labels and variables."""
    specs = {}
    for document in filter(None, yaml.safe_load_all(text)):
        spec = document.get("spec", {})
        spec.pop("selector", None)
        if template := spec.get("template"):
            del template["metadata"]
            for container in template["spec"]["containers"]:
                for own in ("env", "envFrom", "imagePullPolicy"):
                    container.pop(own, None)
        specs[document["kind"]] = spec
    return {kind: spec for kind, spec in specs.items() if kind not in ONLY_IN_MANIFESTS}


@pytest.mark.skipif(shutil.which("helm") is None, reason="requires helm")
def test_helm_renders_the_manifests_and_an_ingress() -> None:
    subprocess.run(["helm", "lint", CHART], check=True, capture_output=True)
    run = subprocess.run(
        ["helm", "template", "toolbelt", CHART], check=True, capture_output=True, text=True, timeout=60
    )
    rendered = comparable(run.stdout)
    [rule] = rendered.pop("Ingress")["rules"]
    assert rule["host"] == VALUES["host"]
    assert rendered == comparable(MANIFESTS)
