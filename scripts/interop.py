"""Run the interoperability tests with third-party frameworks and clients. (`make interop`, interop/README.md)

Each part of interop/ has its own environment under .interop, because its packages may conflict with Toolbelt's or with
another part's. All of them use one server, which runs as in production, on a scratch database.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PARTS, KEPT = HERE / "interop", HERE / ".interop"
SERVER = PARTS / "server"
# What the server's database is filled with, beside the demo.
BELT, PLUGINS = SERVER / "belt.yaml", SERVER / "plugins.yaml"
# An MCP server that stands behind Toolbelt there.
SUITE = SERVER / "suite.py"
OPERATOR = "olive"
AGENTS = {"TOOLBELT": "desk", "TOOLBELT_OTHER": "guest"}
# What a wheel is made of.
SOURCES = ("LICENSE", "README.md", "pyproject.toml", "fixtures", "static", "templates", "toolbelt")
SECONDS_TO_START = 60

_OF_TOOLBELT = re.compile(r"^toolbelt-switchboard(?:\[[a-z,-]+\])?", re.MULTILINE)

Environment = Mapping[str, str]


class Failed(Exception):
    """A part or the server could not be set up. The message contains the command and its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a part: whether it is ``good``, and a message."""

    name: str
    good: bool
    words: str


def main(given: Sequence[str] | None = None) -> int:
    """Run the named parts, or all. Print a line for each, and return 1 if one fails."""
    parser = argparse.ArgumentParser(prog="scripts/interop.sh", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="a directory of interop/; all if none is named"
    )
    parser.add_argument("--serve", action="store_true", help="start the server, and run nothing")
    options = parser.parse_args(given)
    known = parts()
    if unknown := sorted({*options.parts} - {*known}):
        print(f"There is no part named {', '.join(unknown)}: there are {', '.join(known)}.", file=sys.stderr)
        return 2
    KEPT.mkdir(exist_ok=True)
    # The server ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="toolbelt-interop-") as scratch:
        try:
            with serving(Path(scratch)) as server:
                if options.serve:
                    return _wait(server.environment)
                return _report([run(name, server.environment) for name in options.parts or known])
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1


def parts() -> tuple[str, ...]:
    """Return the parts in interop/: directories with Python requirements or a Node package."""
    found = (one for one in PARTS.iterdir() if _packages(one).exists())
    return tuple(sorted(one.name for one in found))


def run(name: str, environment: Environment) -> Outcome:
    """Set a part up and run its tests."""
    print(f"\n==> {name}", flush=True)
    begun = time.monotonic()
    try:
        good = (_node if _is_node(PARTS / name) else _python)(name, environment)
    except Failed as failed:
        print(failed, file=sys.stderr)
        good = False
    taken = time.monotonic() - begun
    return Outcome(name=name, good=good, words=f"{'passed' if good else 'FAILED'} in {taken:.0f} s")


def _python(name: str, environment: Environment) -> bool:
    """Run a part's tests with pytest, in its own virtual environment."""
    where, wanted = KEPT / name, PARTS / name / "requirements.txt"
    text = wanted.read_text(encoding="utf-8")
    wheel = _wheel() if _OF_TOOLBELT.search(text) else None
    python, exact = where / "bin" / "python", KEPT / f"{name}.txt"
    extras = (HERE / "pyproject.toml").read_text(encoding="utf-8") if wheel else ""
    if not _is_stamped(where, stamp := _digest_of(sys.version, text, extras)):
        shutil.rmtree(where, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(where)])
        # Another package may have this name in an index, so Toolbelt is installed from here.
        address = f"@ {wheel.as_uri()}" if wheel else ""
        exact.write_text(_OF_TOOLBELT.sub(rf"\g<0> {address}", text), encoding="utf-8")
        _do([*_pip(python), "--requirement", str(exact)])
        _stamp(where, stamp)
    elif wheel:
        _do([*_pip(python), "--no-deps", "--force-reinstall", str(wheel)])
    if (PARTS / name / "package.json").exists():
        _install_programs(name)
    tests = ["-m", "pytest", "-c", str(PARTS / "pytest.ini"), "--rootdir", str(PARTS), str(PARTS / name)]
    return subprocess.run([python, *tests], cwd=PARTS, env=_around(environment)).returncode == 0


def _node(name: str, environment: Environment) -> bool:
    """Run a part's ``npm test``, in a copy beside its packages."""
    where, source = KEPT / name, PARTS / name
    stamp = hashlib.sha256(
        b"".join(one.read_bytes() for one in sorted(source.glob("package*.json")))
    ).hexdigest()
    shutil.copytree(source, where, dirs_exist_ok=True)
    shutil.copy(PARTS / "kit.mjs", where)
    if not _is_stamped(where, stamp):
        shutil.rmtree(where / "node_modules", ignore_errors=True)
        act = "ci" if (source / "package-lock.json").exists() else "install"
        _do(["npm", act, "--no-audit", "--no-fund", "--loglevel=error"], cwd=where)
        _stamp(where, stamp)
    return subprocess.run(["npm", "test", "--silent"], cwd=where, env=_around(environment)).returncode == 0


def _install_programs(name: str) -> None:
    """Install the Node programs that a Python part runs, under ``node`` in its environment.

    Packages' install scripts are not run, because some download more.
    """
    where, source = KEPT / name / "node", PARTS / name / "package.json"
    if not _is_stamped(where, stamp := _digest_of(source.read_text(encoding="utf-8"))):
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        shutil.copy(source, where)
        _do(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=where)
        _stamp(where, stamp)


def _wheel() -> Path:
    """Build the package as it would be published, so that its extras are tested, too.

    Its version contains a digest of the sources, so it is only built again if they have changed.
    """
    digest = _digest()
    build = KEPT / "wheel" / digest
    if not (found := [*build.glob("*.whl")]):
        shutil.rmtree(KEPT / "wheel", ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="toolbelt-wheel-") as scratch:
            for name in SOURCES:
                source, copy = HERE / name, Path(scratch) / name
                if source.is_dir():
                    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(source, copy)
            init = Path(scratch) / "toolbelt" / "__init__.py"
            text = init.read_text(encoding="utf-8")
            init.write_text(re.sub(r'(?m)^(__version__ = ".+)"$', rf'\1+{digest}"', text), encoding="utf-8")
            _do(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "wheel",
                    "--quiet",
                    "--no-deps",
                    "--wheel-dir",
                    str(build),
                    scratch,
                ]
            )
        found = [*build.glob("*.whl")]
    return found[0]


def _digest_of(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _digest() -> str:
    files = (
        one for name in SOURCES for one in ([HERE / name] if (HERE / name).is_file() else _code(HERE / name))
    )
    hashed = hashlib.sha256()
    for one in sorted(files):
        hashed.update(f"{one.relative_to(HERE)}\0".encode())
        hashed.update(one.read_bytes())
    return hashed.hexdigest()[:12]


def _code(directory: Path) -> Iterable[Path]:
    return (one for one in directory.rglob("*") if one.is_file() and "__pycache__" not in one.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server, with the address, names and tokens that the parts receive."""

    environment: Environment
    running: subprocess.Popen[bytes]

    def processes(self) -> list[int]:
        """Return the ids of the worker processes: one, or several under a supervisor."""
        own = self.running.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text(encoding="ascii").split()
        serving = [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
        return serving or [own]

    def stop(self) -> int:
        """Stop the server as an init system does, and wait. Return its exit code."""
        self.running.terminate()
        return self.running.wait()


@contextlib.contextmanager
def serving(scratch: Path, *, workers: int = 1, more: Environment | None = None) -> Iterator[Server]:
    """Run a server on its own database. ``more`` are settings that override its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        **os.environ,
        "TOOLBELT_ENV": "production",
        "TOOLBELT_ENV_FILE": os.devnull,
        "TOOLBELT_INSECURE_HTTP": "true",
        "TOOLBELT_PLUGINS_FILE": str(PLUGINS),
        # Nothing runs the demo's tools here.
        "TOOLBELT_RUNNING_SECONDS": "0",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "DATABASE_URL": f"sqlite:///{scratch / 'interop.sqlite3'}",
        "DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(16),
        "PYTHONPATH": os.pathsep.join((str(HERE), str(SERVER))),
        "PYTHONUNBUFFERED": "1",
        **(more or {}),
    }

    def manage(*said: str) -> str:
        command = [sys.executable, str(HERE / "manage.py"), *said]
        return _do(command, cwd=HERE, env=settings).strip().rpartition("\n")[2]

    print("==> Filling a database", flush=True)
    manage("migrate", "--verbosity", "0")
    manage("loaddata", "demo", "--verbosity", "0")
    manage("plugins", "sync")
    manage("belt", "import", str(BELT))
    manage("createsuperuser", "--noinput", "--username", OPERATOR, "--email", f"{OPERATOR}@example.com")
    environment = {
        "TOOLBELT_ADDRESS": f"http://127.0.0.1:{port}",
        "TOOLBELT_DATABASE_URL": settings["DATABASE_URL"],
    }
    # For a part that runs a server of its own.
    environment |= {"TOOLBELT_CHECKOUT": str(HERE), "TOOLBELT_PYTHON": sys.executable}
    environment["TOOLBELT_OPERATOR_TOKEN"] = manage(
        "token", "issue", "--operator", OPERATOR, "--scope", "write"
    )
    # The upstream server also acts as an operator. Toolbelt's own variables are never passed to a server.
    own = {
        "SUITE_ADDRESS": environment["TOOLBELT_ADDRESS"],
        "SUITE_TOKEN": environment["TOOLBELT_OPERATOR_TOKEN"],
    }
    settings |= own
    given = [one for name in own for one in ("--env", f"{name}=${{{name}}}")]
    manage("mcp", "add", "suite", "--namespace=", "--trust", *given, "--command", sys.executable, str(SUITE))
    manage("mcp", "elicitation", "suite")
    for name, agent in AGENTS.items():
        environment[f"{name}_AGENT"] = agent
        environment[f"{name}_TOKEN"] = manage("token", "issue", "--agent", agent)
    # A part that adds a server which runs as a command does so on the machine, as an operator would.
    environment["TOOLBELT_MANAGE"] = str(_written_down(scratch / "manage.json", settings))
    print(f"==> Serving at {environment['TOOLBELT_ADDRESS']}", flush=True)
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "toolbelt.asgi:application",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    command += ["--loop", "uvloop", "--http", "httptools", "--lifespan", "on", "--no-access-log"]
    command += ["--timeout-graceful-shutdown", "5"]
    command += ["--workers", str(workers)] if workers > 1 else []
    KEPT.mkdir(exist_ok=True)
    log = KEPT / "server.log"
    with log.open("wb") as said:
        running = subprocess.Popen(command, cwd=HERE, env=settings, stdout=said, stderr=said)
    try:
        _until_it_answers(environment["TOOLBELT_ADDRESS"], running, log)
        yield Server(environment=environment, running=running)
    finally:
        running.terminate()
        running.wait()


def _written_down(where: Path, settings: Environment) -> Path:
    """Write how to run ``manage.py`` on this server's database, readable by this user only."""
    where.touch(mode=0o600)
    command = [sys.executable, str(HERE / "manage.py")]
    where.write_text(json.dumps({"command": command, "environment": settings}), encoding="utf-8")
    return where


def _until_it_answers(address: str, running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < until and running.poll() is None:
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError),
            urllib.request.urlopen(f"{address}/healthz"),  # noqa: S310 - its own
        ):
            return
        time.sleep(0.1)
    raise Failed(f"The server does not answer; what it said is in {log}.")


def _wait(environment: Environment) -> int:
    print("\n".join(f"export {name}={value}" for name, value in environment.items()))
    print("Stop it with Ctrl+C.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)
    return 0


def _report(outcomes: Sequence[Outcome]) -> int:
    print()
    width = max(len(one.name) for one in outcomes)
    for one in outcomes:
        print(f"  {one.name:<{width}}  {one.words}")
    failed = [one for one in outcomes if not one.good]
    print(f"\n{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _packages(part: Path) -> Path:
    return part / ("package.json" if _is_node(part) else "requirements.txt")


def _is_node(part: Path) -> bool:
    """Return whether a part's tests run in Node.

    A Python part may also have a package.json, for programs that it runs.
    """
    return not (part / "requirements.txt").exists()


def _is_stamped(where: Path, stamp: str) -> bool:
    kept = where / ".installed"
    return kept.exists() and kept.read_text(encoding="utf-8") == stamp


def _stamp(where: Path, stamp: str) -> None:
    (where / ".installed").write_text(stamp, encoding="utf-8")


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def _around(environment: Environment) -> dict[str, str]:
    """Return a part's environment variables: the machine's, the server's, and none that allow telemetry."""
    return {**os.environ, "PYTHONPATH": str(PARTS), "OTEL_SDK_DISABLED": "true", **environment}


def _do(command: Sequence[str], cwd: Path = HERE, env: Environment | None = None) -> str:
    """Run a setup command. Return its output."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise Failed(f"{' '.join(command[:6])} … failed:\n{last}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
