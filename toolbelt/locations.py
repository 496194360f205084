"""The locations of an installation's files, and of Toolbelt's own.

A checkout has everything in its directory. Installed as a package, Toolbelt's templates, static files and fixtures are
inside the package, and the installation's files (settings, a SQLite database, the collected static files) are in a
directory of their own: ``TOOLBELT_HOME``, or else ``toolbelt`` in the user's data directory (XDG).
"""

from __future__ import annotations

import os
from pathlib import Path

# The name of the package on the index.
DISTRIBUTION = "toolbelt-switchboard"
# The file of the search's sentence vectors, in the installation's directory.
SEARCH_VECTORS = "search-vectors.bin"

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "assets"

IS_CHECKOUT = not _INSTALLED.is_dir()
# The directory of ``docs``, ``templates``, ``static`` and ``fixtures``.
ASSETS = _PACKAGE.parent if IS_CHECKOUT else _INSTALLED
# The directory of the documents.
DOCUMENTS = ASSETS / "docs"


def document(name: str) -> str:
    """Return the path of a document, such as ``reference/errors.md``, for a message: where its reader has it."""
    return f"docs/{name}" if IS_CHECKOUT else str(DOCUMENTS / name)


def home() -> Path:
    """Return the directory of the installation's files, which may not exist yet."""
    if configured := os.environ.get("TOOLBELT_HOME"):
        return Path(configured).expanduser().resolve()
    if IS_CHECKOUT:
        return ASSETS
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().resolve() / "toolbelt"
