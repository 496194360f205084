"""Tests that plugins are loaded, initialized, and reported if they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models
from toolbelt.control.servers import plugins as configured
from toolbelt.plugins import contract, lifecycle
from toolbelt.runtime import plugins
from toolbelt.runtime.operators import OPERATORS


def test_a_broken_plugin_does_not_prevent_others_from_initializing(db: None, install: Install) -> None:
    install("Broken", "Kb")

    states = {plugin.name: plugin.state for plugin in plugins.initialize()}

    assert states == {"broken": "failed", "kb": "initialized"}
    assert dict(models.Plugin.objects.values_list("name", "status")) == {"broken": "failed", "kb": "ready"}


def test_a_secret_in_a_plugin_s_error_is_withheld(
    db: None, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_KEY", "sesame-9000")
    install("Indiscreet", config='key: "${INDEX_KEY}"')

    (failed,) = plugins.initialize()
    configured.sync(OPERATOR, plugins.live())

    assert "[withheld]" in failed.error
    assert "sesame" not in failed.error
    assert "sesame" not in models.Plugin.objects.get(name="indiscreet").error


def test_an_invalid_plugins_file_results_in_no_plugins(db: None, listed: Callable[[str], None]) -> None:
    listed("tool_plugins: [")

    assert plugins.live() == []
    assert len(plugins.loaded().problems) == 1


def test_a_plugin_that_cannot_be_loaded_is_reported_by_name(
    db: None, install: Install, listed: Callable[[str], None]
) -> None:
    install("Kb")
    listed("tool_plugins:\n  - id: kb\n    module: tests.runtime.no_such\n    class_name: Kb")

    plugins.report_unserved("kb")

    assert "no_such" in models.Plugin.objects.get(name="kb").error


def test_an_error_while_reporting_a_plugin_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = []

    def fail(plugin: str, error: str) -> None:
        reported.append((plugin, error))
        raise RuntimeError("the database is gone")

    monkeypatch.setattr(OPERATORS, "record_failure", fail)

    plugins.report("kb", lifecycle.Status("failed", "x"))

    assert reported == [("kb", "x")]


@pytest.mark.django_db(transaction=True)
def test_plugins_are_initialized_at_startup_if_configured(install: Install, settings: Any) -> None:
    install("Kb")
    plugins.start()
    assert [plugin.state for plugin in plugins.live()] == ["registered"]

    settings.TOOLBELT_PLUGIN_INIT = "start"
    plugins._start()
    assert [plugin.state for plugin in plugins.live()] == ["initialized"]


def test_the_configured_wallet_is_used_for_the_plugin_s_namespace(settings: Any) -> None:
    settings.TOOLBELT_WALLET = "tests.plugins.test_agent_adapter:Wallet"
    wallet: Any = plugins.Runtime("pay", {}).wallet
    assert wallet.namespace == "pay"


def test_a_missing_wallet_error_names_the_setting() -> None:
    with pytest.raises(contract.WalletMissing, match="TOOLBELT_WALLET"):
        plugins.Runtime("pay", {}).wallet  # noqa: B018
