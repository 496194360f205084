"""Convert another program's configuration to a belt, and import it.

Problems have their paths in the file that is adopted, also those that the import finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.core import adoption, errors

Adopted = adoption.Adopted
Kind = adoption.Kind
KINDS = adoption.KINDS
TITLES = adoption.TITLES
recognize = adoption.recognize


def convert(document: Any, *, kind: Kind | None = None, agent: str = "") -> Adopted:
    """Return the belt for a file's document, beside what is stored; raise Invalid with every problem of the file."""
    return adoption.adopt(document, belts.export(), kind=kind, agent=agent)


def preview(write: writing.Write, adopted: Adopted) -> belts.Imported:
    """Return the effects of importing it, without importing it; raise as :func:`import_` does."""
    with paths_of(adopted):
        return belts.preview(write, adopted.belt)


def import_(write: writing.Write, adopted: Adopted) -> belts.Imported:
    """Import it, all or nothing; raise Invalid with each problem at its path in the file, or ConfirmationRequired."""
    with paths_of(adopted):
        return belts.import_(write, adopted.belt)


@contextmanager
def paths_of(adopted: Adopted) -> Iterator[None]:
    """Within the block, let problems of the belt have their paths in the file."""
    try:
        yield
    except errors.Invalid as error:
        raise errors.Invalid([adopted.in_file(problem) for problem in error.problems]) from error
    except errors.ConfirmationRequired as error:
        unresolved = [
            adopted.in_file(errors.Problem(**listed)) for listed in error.differences.get("unresolved", ())
        ]
        raise errors.ConfirmationRequired(list(map(str, unresolved)), error.differences) from error
