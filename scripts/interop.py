"""Run the interoperability tests with third-party frameworks and clients. (`make interop`, interop/README.md)

Each part of interop/ has its own environment under .interop, because its packages may conflict with Toolbelt's or with
another part's. All of them use one server, which runs as in production, on a scratch database.
"""

from __future__ import annotations

import argparse
import base64
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
PARTS, ENVIRONMENTS = HERE / "interop", HERE / ".interop"
SERVER = PARTS / "server"
# The content of the server's database, in addition to the demo.
BELT, PLUGINS = SERVER / "belt.yaml", SERVER / "plugins.yaml"
# An upstream MCP server.
SUITE = SERVER / "suite.py"
OPERATOR = "olive"
AGENTS = {"TOOLBELT": "desk", "TOOLBELT_OTHER": "guest"}
# The sources of a wheel.
SOURCES = ("LICENSE", "README.md", "pyproject.toml", "docs", "fixtures", "static", "templates", "toolbelt")
SECONDS_TO_START = 60

_TOOLBELT_REQUIREMENT = re.compile(r"^toolbelt-switchboard(?:\[[a-z,-]+\])?", re.MULTILINE)

Environment = Mapping[str, str]


class Failed(Exception):
    """A part or the server could not be set up. The message contains the command and its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a part: whether it passed, and a message."""

    name: str
    passed: bool
    message: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named parts, or all. Print a line for each, and return 1 if one fails."""
    parser = argparse.ArgumentParser(prog="scripts/interop.sh", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="a directory of interop/ (all)")
    parser.add_argument("--serve", action="store_true", help="start the server, but run no part")
    options = parser.parse_args(arguments)
    known = parts()
    if unknown := sorted({*options.parts} - {*known}):
        print(f"Unknown part: {', '.join(unknown)}. The parts are {', '.join(known)}.", file=sys.stderr)
        return 2
    ENVIRONMENTS.mkdir(exist_ok=True)
    # The server ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="toolbelt-interop-") as scratch:
        try:
            with serving(Path(scratch)) as server:
                if options.serve:
                    return _serve_until_interrupted(server.environment)
                return _report([run(name, server.environment) for name in options.parts or known])
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1


def parts() -> tuple[str, ...]:
    """Return the parts in interop/: directories with Python requirements or a Node package."""
    return tuple(sorted(part.name for part in PARTS.iterdir() if _packages(part).exists()))


def run(name: str, environment: Environment) -> Outcome:
    """Set up a part and run its tests."""
    print(f"\n==> {name}", flush=True)
    started = time.monotonic()
    try:
        passed = (_node if _is_node(PARTS / name) else _python)(name, environment)
    except Failed as failed:
        print(failed, file=sys.stderr)
        passed = False
    elapsed = time.monotonic() - started
    message = f"{'passed' if passed else 'FAILED'} in {elapsed:.0f} s"
    return Outcome(name=name, passed=passed, message=message)


def _python(name: str, environment: Environment) -> bool:
    """Run a part's tests with pytest, in its own virtual environment."""
    directory, requirements = ENVIRONMENTS / name, PARTS / name / "requirements.txt"
    text = requirements.read_text(encoding="utf-8")
    wheel = _wheel() if _TOOLBELT_REQUIREMENT.search(text) else None
    python, resolved = directory / "bin" / "python", ENVIRONMENTS / f"{name}.txt"
    extras = (HERE / "pyproject.toml").read_text(encoding="utf-8") if wheel else ""
    if not _is_stamped(directory, stamp := _digest_of(sys.version, text, extras)):
        shutil.rmtree(directory, ignore_errors=True)
        _run_setup([sys.executable, "-m", "venv", str(directory)])
        # Another package may have this name in an index, so Toolbelt is installed from this checkout.
        address = f"@ {wheel.as_uri()}" if wheel else ""
        resolved.write_text(_TOOLBELT_REQUIREMENT.sub(rf"\g<0> {address}", text), encoding="utf-8")
        _run_setup([*_pip(python), "--requirement", str(resolved)])
        _stamp(directory, stamp)
    elif wheel:
        _run_setup([*_pip(python), "--no-deps", "--force-reinstall", str(wheel)])
    if (PARTS / name / "package.json").exists():
        _install_programs(name)
    tests = ["-m", "pytest", "-c", str(PARTS / "pytest.ini"), "--rootdir", str(PARTS), str(PARTS / name)]
    return subprocess.run([python, *tests], cwd=PARTS, env=_part_environment(environment)).returncode == 0


def _node(name: str, environment: Environment) -> bool:
    """Run a part's ``npm test``, in a copy beside its packages."""
    directory, source = ENVIRONMENTS / name, PARTS / name
    stamp = hashlib.sha256(
        b"".join(file.read_bytes() for file in sorted(source.glob("package*.json")))
    ).hexdigest()
    shutil.copytree(source, directory, dirs_exist_ok=True)
    shutil.copy(PARTS / "kit.mjs", directory)
    if not _is_stamped(directory, stamp):
        shutil.rmtree(directory / "node_modules", ignore_errors=True)
        npm_command = "ci" if (source / "package-lock.json").exists() else "install"
        _run_setup(["npm", npm_command, "--no-audit", "--no-fund", "--loglevel=error"], cwd=directory)
        _stamp(directory, stamp)
    return (
        subprocess.run(
            ["npm", "test", "--silent"], cwd=directory, env=_part_environment(environment)
        ).returncode
        == 0
    )


def _install_programs(name: str) -> None:
    """Install the Node programs that a Python part runs, under ``node`` in its environment.

    Install scripts of packages are not run, because some download more files.
    """
    directory, source = ENVIRONMENTS / name / "node", PARTS / name / "package.json"
    if not _is_stamped(directory, stamp := _digest_of(source.read_text(encoding="utf-8"))):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        shutil.copy(source, directory)
        _run_setup(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=directory,
        )
        _stamp(directory, stamp)


def _wheel() -> Path:
    """Build the package as it would be published, so that its extras are also tested.

    Its version contains a digest of the sources, so it is only built again if they have changed.
    """
    digest = _digest()
    build = ENVIRONMENTS / "wheel" / digest
    if not (wheels := [*build.glob("*.whl")]):
        shutil.rmtree(ENVIRONMENTS / "wheel", ignore_errors=True)
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
            _run_setup(
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
        wheels = [*build.glob("*.whl")]
    return wheels[0]


def _digest_of(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _digest() -> str:
    files = (
        file
        for name in SOURCES
        for file in ([HERE / name] if (HERE / name).is_file() else _code(HERE / name))
    )
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(HERE)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _code(directory: Path) -> Iterable[Path]:
    return (file for file in directory.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server, with the address, names and tokens that the parts receive."""

    environment: Environment
    running: subprocess.Popen[bytes]

    def processes(self) -> list[int]:
        """Return the ids of the worker processes: one, or several under a supervisor."""
        own = self.running.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text(encoding="ascii").split()
        workers = [
            int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        return workers or [own]

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
        # Where the static files of its pages are collected.
        "TOOLBELT_HOME": str(scratch),
        "TOOLBELT_INSECURE_HTTP": "true",
        "TOOLBELT_PLUGINS_FILE": str(PLUGINS),
        # Nothing runs the demo's tools here.
        "TOOLBELT_RUNNING_SECONDS": "0",
        "SECRET_KEY": secrets.token_urlsafe(50),
        # A key of Fernet, for sign-ins at servers.
        "TOOLBELT_ENCRYPTION_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "DATABASE_URL": f"sqlite:///{scratch / 'interop.sqlite3'}",
        "DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(16),
        "PYTHONPATH": os.pathsep.join((str(HERE), str(SERVER))),
        "PYTHONUNBUFFERED": "1",
        **(more or {}),
    }

    def manage(*arguments: str, **more: str) -> str:
        command = [sys.executable, str(HERE / "manage.py"), *arguments]
        return _run_setup(command, cwd=HERE, env=settings | more).strip().rpartition("\n")[2]

    print("==> Filling a database", flush=True)
    manage("collectstatic", "--noinput", "--verbosity", "0")
    manage("migrate", "--verbosity", "0")
    manage("loaddata", "demo", "--verbosity", "0", TOOLBELT_ENV="demo", DEMO_REPOSITORY="")
    manage("plugins", "sync")
    manage("belt", "import", str(BELT))
    manage("createsuperuser", "--noinput", "--username", OPERATOR, "--email", f"{OPERATOR}@example.com")
    environment = {
        "TOOLBELT_ADDRESS": f"http://127.0.0.1:{port}",
        "TOOLBELT_DATABASE_URL": settings["DATABASE_URL"],
    }
    # For parts that run their own server.
    environment |= {"TOOLBELT_CHECKOUT": str(HERE), "TOOLBELT_PYTHON": sys.executable}
    environment["TOOLBELT_OPERATOR_TOKEN"] = manage(
        "token", "issue", "--operator", OPERATOR, "--scope", "write"
    )
    # The upstream server also acts as an operator. Toolbelt never passes its own variables to a server.
    suite = {
        "SUITE_ADDRESS": environment["TOOLBELT_ADDRESS"],
        "SUITE_TOKEN": environment["TOOLBELT_OPERATOR_TOKEN"],
    }
    settings |= suite
    variables = [part for name in suite for part in ("--env", f"{name}=${{{name}}}")]
    manage(
        "mcp", "add", "suite", "--namespace=", "--trust", *variables, "--command", sys.executable, str(SUITE)
    )
    manage("mcp", "elicitation", "suite")
    for name, agent in AGENTS.items():
        environment[f"{name}_AGENT"] = agent
        environment[f"{name}_TOKEN"] = manage("token", "issue", "--agent", agent)
    # Servers that run as commands are added with manage.py on the machine, as an operator would.
    environment["TOOLBELT_MANAGE"] = str(_write_manage_file(scratch / "manage.json", settings))
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
    ENVIRONMENTS.mkdir(exist_ok=True)
    log = ENVIRONMENTS / "server.log"
    with log.open("wb") as output:
        running = subprocess.Popen(command, cwd=HERE, env=settings, stdout=output, stderr=output)
    try:
        _wait_until_ready(environment["TOOLBELT_ADDRESS"], running, log)
        yield Server(environment=environment, running=running)
    finally:
        running.terminate()
        running.wait()


def _write_manage_file(path: Path, settings: Environment) -> Path:
    """Write the command and settings to run ``manage.py`` on this server's database, readable only by this user."""
    path.touch(mode=0o600)
    command = [sys.executable, str(HERE / "manage.py")]
    path.write_text(json.dumps({"command": command, "environment": settings}), encoding="utf-8")
    return path


def _wait_until_ready(address: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and running.poll() is None:
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError),
            urllib.request.urlopen(f"{address}/healthz"),  # noqa: S310 - its own
        ):
            return
        time.sleep(0.1)
    raise Failed(f"The server does not respond; its output is in {log}.")


def _serve_until_interrupted(environment: Environment) -> int:
    print("\n".join(f"export {name}={value}" for name, value in environment.items()))
    print("Stop it with Ctrl+C.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)
    return 0


def _report(outcomes: Sequence[Outcome]) -> int:
    print()
    width = max(len(outcome.name) for outcome in outcomes)
    for outcome in outcomes:
        print(f"  {outcome.name:<{width}}  {outcome.message}")
    failed = [outcome for outcome in outcomes if not outcome.passed]
    print(f"\n{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _packages(part: Path) -> Path:
    return part / ("package.json" if _is_node(part) else "requirements.txt")


def _is_node(part: Path) -> bool:
    """Return whether a part's tests run in Node.

    A Python part may also have a package.json, for programs that it runs.
    """
    return not (part / "requirements.txt").exists()


def _is_stamped(directory: Path, stamp: str) -> bool:
    file = directory / ".installed"
    return file.exists() and file.read_text(encoding="utf-8") == stamp


def _stamp(directory: Path, stamp: str) -> None:
    (directory / ".installed").write_text(stamp, encoding="utf-8")


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def _part_environment(environment: Environment) -> dict[str, str]:
    """Return a part's environment variables: the machine's and the server's, with telemetry disabled."""
    return {**os.environ, "PYTHONPATH": str(PARTS), "OTEL_SDK_DISABLED": "true", **environment}


def _run_setup(command: Sequence[str], cwd: Path = HERE, env: Environment | None = None) -> str:
    """Run a setup command. Return its output."""
    completed = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if completed.returncode:
        last = "\n".join((completed.stdout + completed.stderr).strip().splitlines()[-12:])
        raise Failed(f"{' '.join(command[:6])} … failed:\n{last}")
    return completed.stdout


if __name__ == "__main__":
    sys.exit(main())
