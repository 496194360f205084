"""What may an operator set, and is it sound? One root, and what a file may weigh."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LARGEST_BYTES = 2_000_000
CEILING = 50_000_000


class Unsound(ValueError):
    """The configuration cannot be used; the message says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``largest_bytes``: what a file that is read, searched or written may weigh.

    ``hard_links``: whether a file that has several names is read.
    """

    root: str
    largest_bytes: int = LARGEST_BYTES
    hard_links: bool = False


def read(config: Mapping[str, Any]) -> Settings:
    """Read the plugin's ``config``; raises :class:`Unsound`."""
    unknown = sorted(set(config).difference(("root", "largest_bytes", "hard_links")))
    if unknown:
        raise Unsound(
            f"files does not know {', '.join(unknown)}: its config has root, largest_bytes and hard_links."
        )
    root = config.get("root")
    if not isinstance(root, str) or not root:
        raise Unsound("files needs a root: name the directory that it may use as config.root.")
    if not os.path.isabs(root):
        raise Unsound(f"The root {root!r} depends on where the server was started: write it from / on.")
    if not os.path.isdir(root):
        raise Unsound(f"The root {root!r} is not a directory that is there: make it, or name another.")
    largest = config.get("largest_bytes", LARGEST_BYTES)
    if isinstance(largest, bool) or not isinstance(largest, int) or not 0 < largest <= CEILING:
        raise Unsound(f"largest_bytes is a number from 1 to {CEILING}, not {largest!r}.")
    hard_links = config.get("hard_links", False)
    if not isinstance(hard_links, bool):
        raise Unsound(f"hard_links is true or false, not {hard_links!r}.")
    return Settings(root=root, largest_bytes=largest, hard_links=hard_links)
