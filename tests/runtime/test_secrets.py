"""A plugin gets its own secrets from the right source, and no other plugin's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolbelt.plugins import contract
from toolbelt.runtime import secrets


def retrieve(key: str, namespace: str = "kb", **config: Any) -> str:
    return asyncio.run(secrets.Secrets("kb", config).retrieve(namespace, key))


def test_the_environment_counts_before_the_file_and_that_before_the_config(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert retrieve("api_key", api_key="from config") == "from config"

    (tmp_path / "kb__api_key").write_text("from file\n")
    settings.TOOLBELT_SECRETS_DIR = str(tmp_path)
    assert retrieve("api_key", api_key="from config") == "from file"

    monkeypatch.setenv("TOOLBELT_SECRET_KB__API_KEY", "from environment")
    assert retrieve("api_key", api_key="from config") == "from environment"


def test_a_secret_that_is_not_there_is_named_with_the_way_out() -> None:
    with pytest.raises(contract.SecretMissing, match="TOOLBELT_SECRET_KB__API_KEY"):
        retrieve("api_key")
    with pytest.raises(contract.SecretMissing):
        retrieve("api_key", api_key={"not": "a text"})


def test_another_namespace_is_refused_whether_it_has_the_secret_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_MAIL__PASSWORD", "p")

    with pytest.raises(contract.NamespaceRefused):
        retrieve("password", namespace="mail")


@pytest.mark.parametrize("key", ["", "_key", "a__key", "../kb__key", "a/b", "key_", "a\0"])
def test_a_key_that_could_be_read_as_part_of_a_namespace_or_a_path_is_none(
    key: str, tmp_path: Path, settings: Any
) -> None:
    settings.TOOLBELT_SECRETS_DIR = str(tmp_path)

    with pytest.raises(contract.SecretMissing):
        retrieve(key, **{key: "x"})


def test_what_was_handed_out_is_taken_from_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_KB__TOKEN", "tb-handed-out")
    retrieve("token")

    assert secrets.mask("Bearer tb-handed-out.") == "Bearer [withheld]."
