"""The command that pages and messages print for running management commands in this installation.

In a checkout it can be pasted into a shell in the directory of ``manage.py``. It names the settings that this process
reads and its Python, both relative to that directory, so that it does not reveal where on the machine it is. An
installed package has the command ``toolbelt``, which is written with its directory unless that is on the path. If
``TOOLBELT_HOME`` is set, the command sets it too, because it would otherwise belong to another installation.
"""

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from toolbelt import locations


def derive(
    base: Path,
    *,
    prefix: str,
    environ: Mapping[str, str],
    is_checkout: bool = True,
    is_absolute: bool = False,
) -> str:
    """Return the text before a command's name, such as ``TOOLBELT_ENV_FILE=.demo.env .venv/bin/python manage.py``.

    ``base`` is the directory of the installation, where a checkout has ``manage.py`` unless ``TOOLBELT_HOME`` is set,
    and ``prefix`` that of the running Python (``sys.prefix``). A Python outside of the checkout is called ``python``,
    assuming that it is on the path. With ``is_absolute``, the command works in any directory.
    """
    parts = []
    code = base
    if home := environ.get("TOOLBELT_HOME"):
        code = locations.ASSETS
        parts.append(f"TOOLBELT_HOME={shlex.quote(str(base) if is_absolute else home)}")
    if file := environ.get("TOOLBELT_ENV_FILE"):
        # A file elsewhere keeps its given path, because the command would otherwise read other settings.
        shown_file = str(base / file) if is_absolute else _relative(base, base / file) or file
        parts.append(f"TOOLBELT_ENV_FILE={shlex.quote(shown_file)}")
    if not is_checkout:
        return " ".join([*parts, _installed(Path(prefix), environ.get("PATH", ""))])
    if is_absolute:
        python = str(Path(prefix) / "bin/python") if os.name == "posix" else "python"
        return " ".join([*parts, shlex.quote(python), shlex.quote(str(code / "manage.py"))])
    environment = _relative(code, Path(prefix))
    parts.append(shlex.quote(f"{environment}/bin/python") if environment and os.name == "posix" else "python")
    return " ".join([*parts, "manage.py"])


def _installed(prefix: Path, path: str) -> str:
    """Return the command of the package in an environment, as it can be run with this search path."""
    command = prefix / "bin" / "toolbelt"
    found = shutil.which("toolbelt", path=path)
    # pipx and uv put a link to the command on the path.
    is_found = found is not None and Path(found).resolve() == command.resolve()
    return shlex.quote(str(command)) if command.exists() and not is_found else "toolbelt"


def _relative(base: Path, path: Path) -> str:
    """Return the path relative to the base; empty if it is not below it."""
    # The last part is not resolved: a virtual environment or a file may be a link to somewhere else.
    resolved = path.parent.resolve() / path.name
    below = resolved.is_relative_to(base.resolve()) and resolved != base.resolve()
    return resolved.relative_to(base.resolve()).as_posix() if below else ""
