"""Tests of the files in docs/deploy, as far as they can be checked without the programs that they are for."""

from __future__ import annotations

import json
import re

import prometheus_client
import pytest
from django.test import Client

from tests.docs import pages

DEPLOY = pages.ROOT / "docs/deploy"


@pytest.mark.django_db
def test_grafana_asks_only_for_metrics_that_there_are(client: Client) -> None:
    client.get("/healthz")
    known = {
        f"{metric.name}{suffix}"
        for metric in prometheus_client.REGISTRY.collect()
        for suffix in {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(
            metric.type, ("",)
        )
    }
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:toolbelt|django)_\w+", target["expr"])
    }
    assert asked
    assert asked <= known
