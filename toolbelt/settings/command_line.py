"""How does someone run a command in this installation, as its pages and messages print it?

What is printed is to be pasted into a shell, in the directory of ``manage.py``. So it names the settings that this
process reads and the Python that runs it, both from that directory on: nobody is told where on the machine it is.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path


def derive(base: Path, *, prefix: str, environ: Mapping[str, str]) -> str:
    """Give what stands before a command's name: ``TOOLBELT_ENV_FILE=.demo.env .venv/bin/python manage.py``.

    ``base`` is the directory of ``manage.py``, ``prefix`` that of the Python that runs (``sys.prefix``). A Python from
    outside of ``base`` is called ``python``: whoever set it up has it on the path.
    """
    words = []
    if file := environ.get("TOOLBELT_ENV_FILE"):
        # A file that lies elsewhere keeps the name that it was given: without it, the command would mean another one.
        words.append(f"TOOLBELT_ENV_FILE={shlex.quote(_from(base, base / file) or file)}")
    home = _from(base, Path(prefix))
    words.append(shlex.quote(f"{home}/bin/python") if home and os.name == "posix" else "python")
    return " ".join([*words, "manage.py"])


def _from(base: Path, path: Path) -> str:
    """Name the path from the base on; empty for one that is not below it."""
    # Its last part is left as it is: a virtual environment or a file may be a link that leads elsewhere.
    found = path.parent.resolve() / path.name
    below = found.is_relative_to(base.resolve()) and found != base.resolve()
    return found.relative_to(base.resolve()).as_posix() if below else ""
