"""Tests of what counts as a secret, by the name of a setting and by the form of a value."""

from __future__ import annotations

import string
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import api_tokens, secret_texts

# Put together, so that scanners of this repository do not take them for real.
A36 = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
RANDOM = "Zq83hd92JfksP0alx72Bd8sQ"
SECRET_NAMES = (
    "apiKey api_key api-key x-api-key X-API-Key APIKey apikey API_KEY OPENAI_API_KEY openaiApiKey "
    "openai_key STRIPE_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID aws_session_token secretAccessKey pwd "
    "PWD MYSQL_PWD password passwd userPassword PGPASSWORD db.password passphrase credentials credential "
    "credentials_json private_key privateKey PRIVATE-KEY ssh_private_key signing_key encryptionKey secret "
    "secrets client_secret clientSecret SECRET_KEY webhook_secret token TOKEN accessToken access_token "
    "refresh_token GITHUB_TOKEN githubToken bot_token authToken token_value tokens.github.token "
    "access_tokens apiTokens Authorization proxy-authorization authorization cookie Set-Cookie cookies "
    "sessionid session_id GITHUB_PAT smtp_pass DB_PASS jwt signature X-Hub-Signature SENTRY_DSN "
    "auth proxy_auth service_role_key account_key subscription-key Ocp-Apim-Subscription-Key licenseKey "
    "api_key_2 password1 token2 secret_id otp "
)
PLAIN_NAMES = (
    "token_count tokenCount max_tokens maxTokens MAX_TOKENS total_tokens tokens num_tokens tokenizer "
    "tokenize TOKENIZERS_PARALLELISM token_limit tokenBudget token_type token_url token_endpoint "
    "next_page_token nextPageToken pad_token progressToken keyboard keyboardLayout primary_key primaryKey "
    "public_key publicKey PUBLIC_KEY PRIMARY_KEY sort_key cache_key foreign_key partition-key key keys "
    "keyword keywords monkey turkey hotkey key_id issue_key projectKey idempotency_key author AUTHOR "
    "GIT_AUTHOR_NAME authority authentication oauth auth_type authMethod auth_url is_authenticated "
    "passenger compass bypass passive pass_through password_policy passwordLength password_field "
    "has_password require_password secret_name secretName secretary secrets_manager use_secrets_manager "
    "cookie_policy cookie_domain credentials_file credentialsPath token_file private_key_path "
    "api_key_header apiKeyName pattern path patch dispatch bearer design sign signal session session_name depth "
    "language user username email id url description max_results "
)
SECRETS = [
    "ghp_" + A36,
    "github_pat_" + A36,
    "glpat-" + A36[:20],
    "sk-" + "abcdefghijklmnop1234-sec_a",
    "sk-proj-" + A36,
    "sk-ant-api03-" + A36,
    "sk_live_" + A36[:24],
    "xoxb-" + "123456789012-" + A36[:24],
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + A36[:35],
    "hf_" + A36,
    "npm_" + A36,
    "SG." + A36[:22] + "." + A36,
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + A36,
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "Bearer " + "0b7f6c2d9e",
    "bearer " + RANDOM,
    "Basic " + "YWRhOmh1bnRlcjI=",
    "postgres://ada:hunter2@db.example/x",
    "https://user:pa%20ss@tools.example/",
    "redis://:hunter2@cache:6379/0",
    "Server=db;Database=x;User Id=ada;Password=hunter2;",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + RANDOM + "==",
    "https://hooks.slack.com/services/T00000000/B00000000/" + RANDOM,
    "https://discord.com/api/webhooks/123456789/" + A36,
    "1234567890:AA" + A36,
    RANDOM,
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY9a8b7c6d5",
    "k3jh4k5w6h7k8j9l0q2w3e4r5t6y",
    "use the key " + RANDOM + " for this",
    api_tokens.make(lambda alphabet: alphabet[7]),
]
PLAIN = [
    "",
    "hunter2",
    "English",
    "gpt-5.1-mini-2026-01-01",
    "Meta-Llama-3.1-70B-Instruct-Turbo",
    "claude-opus-5-5-20260801",
    "sk-learn-pipeline-v2-model",
    "task-abcdefghijklmnopqrstuvwxyz",
    "risk-assessment-of-the-second-quarter-2026",
    "123e4567-e89b-12d3-a456-426614174000",
    "123e4567e89b12d3a456426614174000",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:" + "9f86d081884c7d659a2feaa0c55ad015" * 2,
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "2026-11-05T12:30:00.000Z",
    "1.2.3-beta.4+build.5678",
    "registry.example/team/image-name:v1.2.3",
    "/var/lib/data/2026/report-final-v2.pdf",
    "~/.config/tool/settings.json",
    "https://tools.example/api/v1/items?limit=5&sort_key=date",
    "postgres://ada@db.example/x",
    "postgres://ada:${PW}@db.example/x",
    "arn:aws:iam::123456789012:role/MyApplicationRole",
    "ada@example.com",
    "The bearer of this letter may enter; basic rules apply.",
    "a token is a secret, and the password policy says so",
    "getUserAccountDetailsByIdentifier",
    "SCREAMING_SNAKE_CASE_CONSTANT_NAME_2",
    "Europe/Berlin",
    "-----BEGIN PUBLIC KEY-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "SELECT id, name FROM users WHERE created_at > '2026-01-01'",
    "000000000000000000000000000000",
]


def test_a_name_that_holds_a_secret_is_recognized_however_it_is_written() -> None:
    assert [name for name in SECRET_NAMES.split() if not secret_texts.is_name(name)] == []


def test_a_name_that_only_resembles_a_secret_s_is_not_one() -> None:
    assert [name for name in PLAIN_NAMES.split() if secret_texts.is_name(name)] == []


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_recognized_by_its_form_whatever_its_setting_is_called(text: str) -> None:
    assert secret_texts.is_value(text)
    assert secret_texts.is_secret("note", text)


@pytest.mark.parametrize("text", PLAIN)
def test_ids_hashes_paths_and_prose_are_no_secrets_by_their_form(text: str) -> None:
    assert not secret_texts.is_value(text)
    assert not secret_texts.is_secret("note", text)


@pytest.mark.parametrize("name", ["spreadsheet_id", "documentId", "etag", "commit", "cursor", "base_url"])
def test_random_text_is_no_secret_where_the_name_says_that_it_identifies_something(name: str) -> None:
    assert not secret_texts.is_secret(name, RANDOM)
    assert secret_texts.is_secret(name, "ghp_" + A36)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "hunter2"),
        ("password", 12345),
        ("credentials.json", "x"),
        ("api_key", "/Zq83hd92JfksP0alx72Bd8sQ"),
        ("token", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("authorization", "Bearer ${A} and more"),
        ("password", "pre${A}"),
        ("api_key", "$${NAME}"),
        ("api_key", "$NAME"),
    ],
)
def test_what_a_secret_s_setting_holds_is_a_secret(name: str, value: Any) -> None:
    assert secret_texts.is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_key", "${API_KEY}"),
        ("authorization", "Bearer ${TOKEN}"),
        ("auth", "Basic ${USER}:${PASSWORD}"),
        ("dsn", "postgres://ada:${PW}@db/x"),
        ("password", ""),
        ("password", None),
        ("password", True),
        ("token", "off"),
        ("credentials", "/run/secrets/google.json"),
        ("api_key", "[withheld]"),
        ("tokens", 5),
    ],
)
def test_references_switches_and_files_are_no_secrets(name: str, value: Any) -> None:
    assert not secret_texts.is_secret(name, value)


@pytest.mark.parametrize("text", [text for text in SECRETS if secret_texts.has_known_form(text)])
def test_a_secret_of_a_known_form_is_masked_within_a_text(text: str) -> None:
    masked = secret_texts.masked(f"before {text}")

    assert masked.startswith("before ")
    assert secret_texts.WITHHELD in masked
    assert not secret_texts.has_known_form(masked)


def test_nested_settings_are_withheld_by_the_names_around_them() -> None:
    options = {
        "depth": 3,
        "auth": {"type": "basic", "user": "ada", "password": "x"},
        "keys": [{"apiKey": "y"}],
    }

    assert secret_texts.withheld("", options) == {
        "depth": 3,
        "auth": {"type": "basic", "user": "ada", "password": "[withheld]"},
        "keys": [{"apiKey": "[withheld]"}],
    }


@given(st.lists(st.sampled_from(["api", "key", "max", "tokens", "user", "password"]), min_size=1, max_size=4))
def test_a_name_means_the_same_in_every_spelling(parts: list[str]) -> None:
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    spellings = {
        "_".join(parts),
        "-".join(parts),
        ".".join(parts),
        camel,
        "-".join(map(str.capitalize, parts)),
    }

    assert len({secret_texts.is_name(spelling) for spelling in spellings}) == 1


@given(st.text(alphabet=string.printable, max_size=300), st.text(max_size=20))
def test_any_text_can_be_examined_and_what_is_withheld_is_no_secret(text: str, name: str) -> None:
    assert not secret_texts.is_secret(
        name, secret_texts.withheld(name, text) if secret_texts.is_secret(name, text) else ""
    )
    secret_texts.masked(text)


@given(st.text(alphabet=string.ascii_letters + " .,-", max_size=200))
def test_prose_without_digits_is_never_random(text: str) -> None:
    assert not secret_texts.is_value(text) or secret_texts.has_known_form(text)


def test_a_long_text_is_examined_in_linear_time() -> None:
    begun = time.perf_counter()

    for text in ("a" * 2_000_000, "sk-" * 500_000, "https://a:" * 200_000, "eyJ." * 500_000):
        secret_texts.is_value(text)
        secret_texts.masked(text)

    assert time.perf_counter() - begun < 10
