"""What may an operator set, and is it sound? Which repository, which branches, what is protected, what checks it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from toolbelt.plugins.builtin.self_evolution import names

# What a forge or git itself obeys: who may write these may run code elsewhere, or hide it.
PROTECTED = (".github", ".gitlab-ci.yml", ".circleci", "Jenkinsfile", ".gitmodules", ".gitattributes")


class Unsound(ValueError):
    """The configuration cannot be used; the message says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``protected_paths`` without a slash protect that name wherever it stands, with one the path and what is below.

    ``base`` is where new branches begin. ``check_command`` runs, with no other environment than a search path,
    in a copy of the commit that is checked: code that an agent wrote, as the server's user.
    """

    repository: str
    branch_prefix: str = "evolve/"
    base: str = "HEAD"
    protected_paths: tuple[str, ...] = PROTECTED
    check_command: tuple[str, ...] = ()
    check_seconds: int = 120
    push: bool = False
    remote: str = "origin"


def _words(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(one, str) and one and "\0" not in one for one in value
    )


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "repository": (
        lambda value: isinstance(value, str) and os.path.isabs(value) and os.path.isdir(value),
        "the directory of a git repository that is there, written from / on",
    ),
    "branch_prefix": (
        lambda value: isinstance(value, str) and names.is_prefix(value),
        "the beginning of the names of branches, such as 'evolve/', with / at its end",
    ),
    "base": (
        lambda value: isinstance(value, str) and names.is_revision(value),
        "a branch, tag or commit, such as 'main'",
    ),
    "protected_paths": (_words, "a list of names or patterns, such as 'deploy/*' or '*.pem'"),
    "check_command": (_words, "a list: the program and its arguments, such as ['make', 'test']"),
    "check_seconds": (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 3600,
        "a number of seconds from 1 to 3600",
    ),
    "push": (lambda value: isinstance(value, bool), "true or false"),
    "remote": (
        lambda value: isinstance(value, str) and names.is_branch(value),
        "the name of a remote, such as 'origin'",
    ),
}


def read(config: Mapping[str, Any]) -> Settings:
    """Read the plugin's ``config``; raises :class:`Unsound`."""
    known = [one.name for one in fields(Settings)]
    unknown = sorted(set(config).difference(known))
    if unknown:
        raise Unsound(
            f"self_evolution does not know {', '.join(unknown)}: its config has {', '.join(known)}."
        )
    for key, (is_sound, wanted) in _RULES.items():
        if (key in config or key == "repository") and not is_sound(config.get(key)):
            raise Unsound(f"self_evolution's {key} is {wanted}; it is {config.get(key)!r}.")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in config.items()
    }
    return Settings(**values)
