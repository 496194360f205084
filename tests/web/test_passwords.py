"""Tests that few passwords are hashed at a time, and failed logins are limited by address and by name."""

from __future__ import annotations

import threading
import time
from concurrent import futures
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.contrib.auth import models as auth
from django.test import Client

from toolbelt.web.login import passwords

OURS = "toolbelt.web.login.passwords.Argon2PasswordHasher"

pytestmark = pytest.mark.django_db


def log_in(client: Client, name: str, password: str, *, address: str = "192.0.2.7") -> int:
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address).status_code


def test_only_a_few_passwords_are_hashed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def slow(*args: Any) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return "hash"

    monkeypatch.setattr(hashers.Argon2PasswordHasher, "encode", slow)
    monkeypatch.setattr(hashers.Argon2PasswordHasher, "verify", slow)
    ours = passwords.Argon2PasswordHasher()
    with futures.ThreadPoolExecutor(12) as pool:
        made = [pool.submit(ours.encode, "x", "salt") for _ in range(6)]
        checked = [pool.submit(ours.verify, "x", "hash") for _ in range(6)]
    assert all(result.result() for result in made)
    assert all(result.result() for result in checked)
    assert most == passwords.MAX_CONCURRENT


def test_a_login_without_a_free_hashing_slot_is_asked_to_retry(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PASSWORD_HASHERS = [OURS]
    monkeypatch.setattr(passwords, "MAX_WAIT", 0.01)
    for _ in range(passwords.MAX_CONCURRENT):
        passwords._turns.acquire()
    try:
        response = client.post("/login/", {"username": "olive", "password": "correct horse"})
    finally:
        for _ in range(passwords.MAX_CONCURRENT):
            passwords._turns.release()
    assert response.status_code == 503
    assert "Retry-After" in response.headers
    assert "Try again in a few seconds" in response.content.decode()


def test_a_password_hashed_by_django_is_accepted_unchanged(client: Client, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    user = auth.User.objects.create_user("olive", password="correct horse")
    settings.PASSWORD_HASHERS = [OURS]
    assert log_in(client, "olive", "correct horse") == 302
    before = user.password
    user.refresh_from_db()
    assert user.password == before


def test_an_address_is_locked_out_after_failures_across_names(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "MAX_FAILURES_OF_ADDRESS", 4)
    auth.User.objects.create_user("olive", password="correct horse", is_staff=True)
    codes = [log_in(client, f"name{n}", "wrong") for n in range(5)]
    assert codes == [200, 200, 200, 200, 429]
    assert log_in(client, "olive", "correct horse") == 429
    assert log_in(client, "olive", "correct horse", address="192.0.2.8") == 302


def test_a_successful_login_does_not_reset_failures_of_other_names(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "MAX_FAILURES_OF_ADDRESS", 4)
    auth.User.objects.create_user("olive", password="correct horse")
    assert [log_in(client, f"name{n}", "wrong") for n in range(3)] == [200] * 3
    assert log_in(client, "olive", "wrong") == 200
    client.logout()
    assert log_in(client, "olive", "correct horse") == 429
    # A success resets the failures of its own name; those of other names still count for the address.
    monkeypatch.setattr(passwords, "MAX_FAILURES_OF_ADDRESS", 5)
    assert log_in(client, "olive", "correct horse") == 302
    client.logout()
    assert [log_in(client, f"name{n}", "wrong") for n in range(3, 6)] == [200, 200, 429]
