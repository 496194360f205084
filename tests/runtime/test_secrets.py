"""Tests that a plugin gets its own secrets from the right source, and no other plugin's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolbelt.plugins import contract
from toolbelt.runtime import secrets


def retrieve(key: str, namespace: str = "kb", **config: Any) -> str:
    return asyncio.run(secrets.Secrets("kb", config).retrieve(namespace, key))


def test_the_environment_overrides_the_file_which_overrides_the_config(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert retrieve("api_key", api_key="from config") == "from config"

    (tmp_path / "kb__api_key").write_text("from file\n")
    settings.TOOLBELT_SECRETS_DIR = str(tmp_path)
    assert retrieve("api_key", api_key="from config") == "from file"

    monkeypatch.setenv("TOOLBELT_SECRET_KB__API_KEY", "from environment")
    assert retrieve("api_key", api_key="from config") == "from environment"


def test_a_missing_secret_error_names_the_variable_to_set() -> None:
    with pytest.raises(contract.SecretMissing, match="TOOLBELT_SECRET_KB__API_KEY"):
        retrieve("api_key")
    with pytest.raises(contract.SecretMissing):
        retrieve("api_key", api_key={"not": "a text"})


def test_a_secret_of_another_namespace_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_MAIL__PASSWORD", "p")

    with pytest.raises(contract.NamespaceRefused):
        retrieve("password", namespace="mail")


@pytest.mark.parametrize("key", ["", "_key", "a__key", "../kb__key", "a/b", "key_", "a\0"])
def test_a_key_that_resembles_a_namespace_or_a_path_is_refused(
    key: str, tmp_path: Path, settings: Any
) -> None:
    settings.TOOLBELT_SECRETS_DIR = str(tmp_path)

    with pytest.raises(contract.SecretMissing):
        retrieve(key, **{key: "x"})


def test_a_retrieved_secret_is_masked_in_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_KB__TOKEN", "tb-handed-out")
    retrieve("token")

    assert secrets.mask("Bearer tb-handed-out.") == "Bearer [withheld]."
