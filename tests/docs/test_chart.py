"""The Helm chart is consistent, and makes the same objects as the plain manifests."""

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
# The chart takes the Secret's name, and sets the variables of the ConfigMap itself.
WITH_THE_MANIFESTS_ALONE = {"Secret", "ConfigMap"}


def names(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the name of each value, such as image.tag; of what is passed on as a whole, its own name."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and name not in ("resources", "ingress.annotations"):
            yield from names(value, f"{name}.")
        else:
            yield name


def test_the_default_values_are_valid_and_misspelled_ones_are_not() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    for wrong in ({"replica": 2}, {"ingress": {"host": "x"}}, {"host": "https://x"}, {"workers": 0}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**VALUES, **wrong}, SCHEMA)


def test_the_templates_use_each_value_and_no_other() -> None:
    used = set(re.findall(r"\.Values\.([\w.]+)", TEMPLATES))
    assert used == set(names(VALUES))


def test_the_chart_is_of_this_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (toolbelt.__version__, toolbelt.__version__)


def test_the_ingress_lets_bodies_pass_that_nginx_lets_pass() -> None:
    allowed = re.search(r"client_max_body_size (\w+);", (DEPLOY / "nginx.conf").read_text())
    assert allowed is not None
    assert VALUES["ingress"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == allowed[1]


def fixed_lines(text: str) -> set[str]:
    """Return the lines with a number, a name or a list that is written out."""
    lines = (line.strip().removeprefix("- ") for line in text.splitlines())
    return {line for line in lines if re.match(r"[\w./-]+: [^{#]", line) and "{{" not in line}


def test_the_chart_and_the_manifests_say_the_same() -> None:
    own = [
        one for one in MANIFESTS.split("\n---\n") if yaml.safe_load(one)["kind"] in WITH_THE_MANIFESTS_ALONE
    ]
    manifests = fixed_lines("\n".join(one for one in MANIFESTS.split("\n---\n") if one not in own))
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


def compared(text: str) -> dict[str, Any]:
    """Return what the objects of each kind say, apart from labels and variables."""
    found = {}
    for document in filter(None, yaml.safe_load_all(text)):
        spec = document.get("spec", {})
        spec.pop("selector", None)
        if template := spec.get("template"):
            del template["metadata"]
            for container in template["spec"]["containers"]:
                for own in ("env", "envFrom", "imagePullPolicy"):
                    container.pop(own, None)
        found[document["kind"]] = spec
    return {kind: spec for kind, spec in found.items() if kind not in WITH_THE_MANIFESTS_ALONE}


@pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm")
def test_helm_renders_the_manifests_and_an_ingress() -> None:
    subprocess.run(["helm", "lint", CHART], check=True, capture_output=True)
    run = subprocess.run(
        ["helm", "template", "toolbelt", CHART], check=True, capture_output=True, text=True, timeout=60
    )
    rendered = compared(run.stdout)
    [rule] = rendered.pop("Ingress")["rules"]
    assert rule["host"] == VALUES["host"]
    assert rendered == compared(MANIFESTS)
