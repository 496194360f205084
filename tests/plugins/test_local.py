"""Tests of the runtime without a server."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from toolbelt.plugins import contract, local


def secret(runtime: local.LocalRuntime, namespace: str, key: str) -> str:
    async def retrieve() -> str:
        return await runtime.secrets.retrieve(namespace, key)

    return asyncio.run(retrieve())


def test_given_secrets_take_precedence_over_the_config():
    runtime = local.LocalRuntime("kb", {"api_key": "c", "pin": 1234}, secrets={"api_key": "s"})

    assert secret(runtime, "kb", "api_key") == "s"
    assert secret(runtime, "kb", "pin") == "1234"


def test_another_namespaces_secret_is_refused():
    with pytest.raises(contract.NamespaceRefused, match="'kb' requested a secret of 'git'"):
        secret(local.LocalRuntime("kb", {"token": "t"}), "git", "token")


@pytest.mark.parametrize("config", [{}, {"api_key": None}, {"api_key": True}, {"api_key": ["x"]}])
def test_a_missing_secret_is_reported_by_name(config):
    with pytest.raises(contract.SecretMissing, match="no secret 'api_key' for 'kb'") as raised:
        secret(local.LocalRuntime("kb", config), "kb", "api_key")
    assert (raised.value.namespace, raised.value.key) == ("kb", "api_key")


def test_state_is_stored_by_key_and_listed_by_prefix_in_order():
    async def check() -> None:
        state = local.LocalRuntime("kb").state
        value = {"words": ["a"]}
        await state.set("note:2", value)
        await state.set("note:1", 1)
        await state.set("other", None)
        value["words"].append("b")
        assert await state.get("note:2") == {"words": ["a"]}
        assert await state.get("none") is None
        assert await state.get("none", 5) == 5
        assert list((await state.list("note:")).items()) == [("note:1", 1), ("note:2", {"words": ["a"]})]
        assert await state.delete("other") is True
        assert await state.delete("other") is False

    asyncio.run(check())


def test_state_accepts_only_json_values():
    with pytest.raises(TypeError):
        asyncio.run(local.LocalState().set("a", {1, 2}))


def test_the_http_client_is_given_or_created_and_closed():
    async def check() -> None:
        async with httpx.AsyncClient() as given:
            assert local.LocalRuntime("kb", http=given).http is given
        runtime = local.LocalRuntime("kb")
        client = runtime.http
        assert isinstance(client, httpx.AsyncClient)
        assert runtime.http is client
        await runtime.aclose()
        assert client.is_closed

    asyncio.run(check())


def test_there_is_no_current_call_outside_of_a_call():
    assert local.LocalRuntime("kb").call is None
