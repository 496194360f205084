"""A program that calls a tool that people have to approve, and may be killed at a point of it.

Its arguments: the order, and the point at which it kills itself, or nothing. The tool notes each run in the file RAN.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django

POINTS = ("asked", "approved", "spending", "spent", "ran")


def kill(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(act: Callable[..., Any]) -> Callable[..., Any]:
    def killed(*arguments: Any, **options: Any) -> Any:
        act(*arguments, **options)
        kill()

    return killed


def note_run(path: str, order: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{order}\n")


def main(order: str, point: str) -> None:
    django.setup()
    from tests.runtime import sample_plugins
    from toolbelt.runtime import calls
    from toolbelt.runtime.calls import asking, last_checks
    from toolbelt.store import call_approvals as rows

    async def search(self: Any, args: dict[str, Any]) -> Any:
        if point == "spent":
            kill()
        note_run(os.environ["RAN"], args["query"])
        if point == "ran":
            kill()
        return {}

    sample_plugins.Kb.search = search  # type: ignore[method-assign]
    match point:
        case "asked":
            rows.add = after(rows.add)
        case "approved":
            last_checks.check_again = kill
        case "spending":
            asking.spend = after(asking.spend)
    calls.run("ada", "kb__search", {"query": order})


if __name__ == "__main__":
    main(*sys.argv[1:3])
