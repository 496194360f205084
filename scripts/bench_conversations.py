"""Benchmark of what a provider has to read again after a change, appended against rewritten. (`make bench`)

The demo's assistant, with the providers' SDKs against strict fakes of their services: the first request of a
conversation, and the one after a change. A provider reads what is equal from the beginning to an earlier request from
its cache, and bills the rest in full.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
from collections.abc import Iterator
from typing import Any

MODELS = [
    ("anthropic", "claude-opus-5-5"),
    ("anthropic", "claude-opus-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai_responses", "gpt-5.6"),
    ("openai_chat", "qwen3-coder"),
    ("gemini", "gemini-3.5-flash"),
]
# About how many bytes of JSON and English text are one token.
BYTES_A_TOKEN = 4


def main() -> int:
    """Measure every case and model, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    os.environ |= {"TOOLBELT_ENV": "test", "TOOLBELT_ENV_FILE": os.devnull}
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    with _filled():
        figures = measure()
    print(json.dumps(figures, indent=2)) if options.json else report(figures)
    return 0


def measure() -> list[dict[str, Any]]:
    """Return the figures of each model and case: bytes that were written at the start, and after the change."""
    from django.db import transaction

    from tests.providers import anthropic_server, cases, chat_server, gemini_server, openai_server, soak

    figures = []
    ways: tuple[cases.Way, ...] = ("appended", "rewritten")
    with (
        anthropic_server.Server() as anthropic,
        openai_server.Server() as openai,
        chat_server.Server() as chat,
        gemini_server.Server() as gemini,
    ):
        services = [soak.claude(anthropic), soak.responses(openai), soak.chat(chat), soak.gemini(gemini)]
        by_form = {service.form: service for service in services}
        for form, model in MODELS:
            for name, case in cases.CASES.items():
                row: dict[str, Any] = {"model": model, "case": name}
                for way in ways:
                    with transaction.atomic():
                        run = cases.run(case, cases.connection(), by_form[form], model, way, cases.apply)
                        transaction.set_rollback(True)
                    row["start"] = run.written[0]
                    # A case that ends with its first answer wrote nothing after it.
                    row[way] = run.refused or (run.written[1] if len(run.written) > 1 else 0)
                figures.append(row)
        for service in services:
            service.close()
    return figures


def report(figures: list[dict[str, Any]]) -> None:
    """Print the figures as a table."""
    print("bytes that a provider reads again in the request after a change (about 4 are a token)\n")
    print(f"{'':48}{'first request':>14}{'appended':>12}{'rewritten':>12}{'ratio':>8}")
    model = ""
    for row in figures:
        if row["model"] != model:
            model = row["model"]
            print(model)
        rewritten, appended = row["rewritten"], row["appended"]
        is_refused = isinstance(rewritten, str)
        shown = "refused" if is_refused else f"{rewritten:,}"
        ratio = "" if is_refused or not rewritten else f"{appended / rewritten:.0%}"
        print(f"  {row['case']:46}{row['start']:>14,}{appended:>12,}{shown:>12}{ratio:>8}")
    first = max(row["start"] for row in figures)
    most = max(row["appended"] for row in figures)
    print(
        f"\ntokens, about: {first // BYTES_A_TOKEN:,} at the start, at most {most // BYTES_A_TOKEN:,} after a change"
    )


@contextlib.contextmanager
def _filled() -> Iterator[None]:
    """Create a database with the demo."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import setup_test_environment

    setup_test_environment()
    logging.disable(logging.INFO)
    name = connection.creation.create_test_db(verbosity=0)
    try:
        call_command("loaddata", "demo", verbosity=0)
        yield
    finally:
        connection.creation.destroy_test_db(
            ":memory:" if connection.vendor == "sqlite" else name, verbosity=0
        )


if __name__ == "__main__":
    raise SystemExit(main())
