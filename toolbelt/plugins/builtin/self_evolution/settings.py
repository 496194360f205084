"""The plugin's settings: the repository, its branches, protected paths, and the command that checks a commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool
from pydantic.dataclasses import dataclass

from toolbelt.plugins import config
from toolbelt.plugins.builtin.self_evolution import names

# Files that git or a forge acts on: writing them can run code elsewhere, or hide changes.
PROTECTED = (".github", ".gitlab-ci.yml", ".circleci", "Jenkinsfile", ".gitmodules", ".gitattributes")


def _valid(is_valid: Callable[[str], bool], words: str) -> AfterValidator:
    def check(value: str) -> str:
        if not is_valid(value):
            raise ValueError(f"{value!r} is not {words}")
        return value

    return AfterValidator(check)


_DIRECTORY = _valid(lambda path: os.path.isabs(path) and os.path.isdir(path), "a directory's absolute path")
# Only complete path components, so that a prefix does not match other branches.
_PREFIX = _valid(lambda name: name[-1:] == "/" and names.is_branch(name[:-1]), "a prefix such as 'evolve/'")
_REVISION = _valid(names.is_revision, "a branch, tag or commit, such as 'main'")
_REMOTE = _valid(names.is_branch, "the name of a remote, such as 'origin'")
Word = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``protected_paths``: a pattern without a slash protects that name in every directory; with a slash, a path.

    ``base``: where new branches start. ``check_command`` runs code that an agent wrote, as the server's user, in a copy
    of the commit, with only PATH in its environment.
    """

    repository: Annotated[str, _DIRECTORY]
    branch_prefix: Annotated[str, _PREFIX] = "evolve/"
    base: Annotated[str, _REVISION] = "HEAD"
    protected_paths: tuple[Word, ...] = PROTECTED
    check_command: tuple[Word, ...] = ()
    check_seconds: Annotated[config.Whole, Field(ge=1, le=3600)] = 120
    push: StrictBool = False
    remote: Annotated[str, _REMOTE] = "origin"
