"""The files plugin's settings."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool
from pydantic.dataclasses import dataclass

from toolbelt.plugins import config


def _directory(path: str) -> str:
    if not os.path.isabs(path):
        raise ValueError(f"{path!r} is not an absolute path: begin it with /")
    if not os.path.isdir(path):
        raise ValueError(f"{path!r} is not a directory: create it, or name another")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``root``: the directory whose files may be used. ``max_file_bytes``: the maximum size of a file.

    ``hard_links``: whether to read files that have several hard links.
    """

    root: Annotated[str, AfterValidator(_directory)]
    max_file_bytes: Annotated[config.Whole, Field(ge=1, le=50_000_000)] = 2_000_000
    hard_links: StrictBool = False
