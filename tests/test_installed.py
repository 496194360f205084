"""Tests of the installed wheel: `toolbelt demo`, `toolbelt init` with `toolbelt serve`, and the first hour."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

import toolbelt
from tests.docs import pages, test_examples
from toolbelt import locations

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "a-password-of-the-tests"
# As it is named on an index, with what a server needs.
PACKAGE = f"{locations.DISTRIBUTION}[server]"


class Installation:
    """An environment with only the wheel installed, and a home directory for its files."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.command = str(folder / "bin" / "toolbelt")
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TOOLBELT_HOME": str(home / "data"),
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.command, *arguments],
            cwd=self.home,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )

    def sh(self, command: str, directory: Path) -> str:
        """Run a command of the documentation in a shell, and return what it prints. Require that it succeeds."""
        run = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, (command, run.stdout, run.stderr)
        return run.stdout

    @contextlib.contextmanager
    def serving(self, *arguments: str, **environment: str) -> Iterator[httpx.Client]:
        """Run a serving command, and yield a client of it that keeps cookies."""
        port = _free_port()
        with open(self.home / "log", "w+") as log:
            process = subprocess.Popen(
                [self.command, *arguments, "--port", port],
                cwd=self.home,
                env={**self.environment, **environment},
                stdout=log,
                stderr=log,
            )
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                    _wait(client, process, self.home / "log")
                    yield client
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def _wait(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        with contextlib.suppress(httpx.TransportError):
            if client.get("/readyz").status_code == 200:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"The server does not answer: {log.read_text()}")


QUIET = ("--quiet", "--no-input", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of wheels as an index has them: the built one, what its extra `server` requires, the server of
    the first hour, and two programs that run a package from an index.
    """
    base = tmp_path_factory.mktemp("index")
    # As it is published: from the source package, and checked.
    build = [sys.executable, "-m", "scripts.package", str(base)]
    subprocess.run(build, check=True, timeout=600, cwd=ROOT)
    [wheel] = base.glob("*.whl")
    upstream = f"mcp-server-git=={importlib.metadata.version('mcp-server-git')}"
    download = [
        sys.executable,
        "-m",
        "pip",
        "download",
        *QUIET,
        "--only-binary",
        ":all:",
        "--dest",
        str(base),
    ]
    subprocess.run([*download, f"{wheel}[server]", upstream, "uv", "pipx", "pip"], check=True, timeout=600)
    return base


def install(index: Path, environment: Path, *packages: str) -> None:
    """Install packages from the folder of wheels alone into a new environment."""
    venv.create(environment)
    # The pip of the tests is used, because installing pip into the environment takes longer than the wheel. Without
    # compiling: modules are compiled when they are imported.
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python"), "install", *QUIET]
    only = ["--isolated", "--no-index", "--find-links", str(index), "--no-compile"]
    subprocess.run([*pip, *only, *packages], check=True, timeout=600)


@pytest.fixture(scope="module")
def folder(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment in which the wheel is installed with its server extra, and the server of the first hour."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    install(index, environment, PACKAGE, "mcp-server-git")
    return environment


@pytest.fixture
def installation(folder: Path, tmp_path: Path) -> Installation:
    return Installation(folder, tmp_path)


def log_in(client: httpx.Client, password: str) -> httpx.Response:
    client.get("/login/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get("/login/").text)
    assert token is not None
    return client.post(
        "/login/",
        data={"username": "operator", "password": password, "csrfmiddlewaretoken": token[1]},
        headers={"Referer": str(client.base_url)},
        follow_redirects=True,
    )


def tools(client: httpx.Client, token: str, agent: str) -> set[str]:
    answer = client.get(f"/api/v1/agents/{agent}/surface", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    return {tool["name"] for tool in answer.json()["tools"]}


def test_the_demo_serves_login_calls_and_switches(installation: Installation) -> None:
    with installation.serving("demo", DEMO_PASSWORD=PASSWORD) as client:
        page = log_in(client, PASSWORD)
        assert page.status_code == 200
        assert client.get(re.search(r'href="(/static/css/base[^"]*)"', page.text)[1]).status_code == 200  # type: ignore[index]
        document = client.get("/help/documents/how-to/run-in-production.md")
        assert (document.status_code, "Run Toolbelt in production" in document.text) == (200, True)
        issued = installation.run("token", "issue", "--agent", "assistant", TOOLBELT_ENV_FILE=".demo.env")
        token = re.search(r"tb_\S+", issued.stdout)
        assert token is not None, issued
        before = tools(client, token[0], "assistant")
        # The plugins of the demo are part of the package, and simulate calls.
        called = client.post(
            "/api/v1/agents/assistant/calls",
            json={"tool": "arxiv", "arguments": {"query": "attention"}},
            headers={"Authorization": f"Bearer {token[0]}"},
        )
        assert "simulated" in called.text, called.text
        # Turn off the first toolkit that the page shows as on.
        access = client.get("/agents/assistant/").text
        forms = re.findall(
            r'<form[^>]+action="(/agents/assistant/switches/\w+/)"(.+?)</form>', access, re.DOTALL
        )
        action, form = next(pair for pair in forms if 'aria-checked="true"' in pair[1])
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        flipped = client.post(
            action,
            data={**fields, "on": "false", "confirm": "true"},
            headers={"Referer": str(client.base_url)},
        )
        assert flipped.status_code == 303, flipped.text
        assert tools(client, token[0], "assistant") < before


def test_the_first_hour_takes_eight_commands_in_an_empty_directory(
    installation: Installation, folder: Path
) -> None:
    """The reader's client is this test: it has the tools of the page's toolkit, calls one, and loses them."""
    page = pages.ROOT / "docs/first-hour.md"
    project, empty = installation.home / "project", installation.home / "empty"
    for path in (project, empty):
        path.mkdir()
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "init", "--quiet", project], check=True)
    commit = ["git", *identity, "commit", "--quiet", "--allow-empty", "--message", "The first"]
    subprocess.run(commit, cwd=project, check=True)
    installation.environment["PATH"] = f"{folder / 'bin'}:{installation.environment['PATH']}"
    del installation.environment["TOOLBELT_HOME"]

    written, differing = [], []
    for piece in pages.pieces(page):
        if isinstance(piece, pages.Block) and piece.file:
            (empty / piece.file).write_text(piece.text, encoding="utf-8")
        elif isinstance(piece, pages.Block) and piece.language == "console":
            for line, shown in test_examples.commands(piece.text):
                written.append(line)
                if line.startswith("$ toolbelt ") and line != "$ toolbelt serve":
                    differing.append(test_examples.difference(shown, installation.sh(line[2:], empty)))
    assert [*filter(None, differing)] == []
    assert len(written) <= 8, written

    token = installation.sh("toolbelt token issue --agent coder", empty).split()[0]
    with installation.serving("serve") as client:
        assert tools(client, token, "coder") == {"git__git_log", "git__git_show", "git__git_status"}
        call = {"tool": "git__git_log", "arguments": {"repo_path": str(project)}}
        headers = {"Authorization": f"Bearer {token}"}
        called = client.post("/api/v1/agents/coder/calls", json=call, headers=headers)
        assert "Message: The first" in called.text, called.text
        installation.sh("toolbelt flip coder repository off", empty)
        assert tools(client, token, "coder") == set()


def test_init_and_serve_set_up_a_production_installation(installation: Installation) -> None:
    _init(installation)
    healthy = installation.run("doctor")
    assert (healthy.returncode, healthy.stdout[:20]) == (0, "Nothing is wrong wit"), healthy.stdout
    with installation.serving("serve", "--workers", "2") as client:
        page = log_in(client, PASSWORD)
        assert page.status_code == 200
        # The hash in the name shows that the collected files are served.
        assert re.search(r'href="/static/css/base\.[0-9a-f]{12}\.css"', page.text)


def test_init_sets_up_an_installation_on_postgresql_that_can_be_moved(installation: Installation) -> None:
    postgres_server = subprocess.run(
        [sys.executable, str(ROOT / "scripts/find_postgres.py")], capture_output=True, text=True
    )
    if postgres_server.returncode:
        pytest.skip("no PostgreSQL server answers")
    name = f"toolbelt_installed_{os.getpid()}"
    with psycopg.connect(postgres_server.stdout.strip(), dbname="postgres", autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            address = postgres_server.stdout.strip().rpartition("/")[0]
            _init(installation, DATABASE_URL=f"{address}/{name}")
            assert f"/{name}'" in (installation.home / "data/.env").read_text()
            # To move, the package starts itself with the other database.
            moved = installation.run(
                "move_database", "--to", f"sqlite:///{installation.home / 'moved.sqlite3'}"
            )
            assert moved.returncode == 0, moved.stderr
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _init(installation: Installation, **environment: str) -> None:
    made = installation.run("init", OPERATOR_PASSWORD=PASSWORD, **environment)
    assert made.returncode == 0, made.stderr
    assert PASSWORD not in made.stdout
    # The printed command works with an unusual directory and command.
    home = installation.home / "data"
    assert f"  Serve      TOOLBELT_HOME={home} {installation.command} serve\n" in made.stdout
    [guide] = re.findall("  Guide      (.+)\n", made.stdout)
    assert Path(guide).is_file()
    # Only the owner can read the settings and a SQLite database.
    assert (installation.home / "data").stat().st_mode & 0o077 == 0
    assert (installation.home / "data/.env").stat().st_mode & 0o077 == 0


def test_an_installation_is_not_created_twice(installation: Installation) -> None:
    (installation.home / "data").mkdir()
    (installation.home / "data/.env").write_text("SECRET_KEY=kept\n")
    again = installation.run("init")
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert (installation.home / "data/.env").read_text() == "SECRET_KEY=kept\n"


def test_a_failed_init_leaves_no_files(installation: Installation) -> None:
    failed = installation.run("init", "--database-url", "mysql://example.com/x")
    assert failed.returncode == 1
    assert "DATABASE_URL" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert [*(installation.home / "data").iterdir()] == []


def test_serve_reports_missing_settings_missing_tables_and_a_used_port(installation: Installation) -> None:
    bare = installation.run("serve")
    assert (bare.returncode, "toolbelt init" in bare.stderr) == (1, True)
    environment = {
        "SECRET_KEY": "k3Jq2Lr9Vb4Nc6Zt1Wd8Ky3Hm5Gf0PsAeRuTiYoQlBnMvCxZkSdFgH",
        "ALLOWED_HOSTS": "localhost",
    }
    (installation.home / "data").mkdir()
    empty = installation.run("serve", "--port", _free_port(), **environment)
    assert (empty.returncode, "toolbelt migrate" in empty.stderr) == (1, True), empty.stderr
    taken = socket.socket()
    with taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = installation.run("serve", "--port", str(taken.getsockname()[1]), **environment)
    assert (refused.returncode, "choose another with --port" in refused.stderr) == (1, True)


def test_uvx_and_pipx_run_the_package_from_an_index(index: Path, tmp_path: Path) -> None:
    """Nothing but the folder of wheels is reached, so this is the first use of what would be published."""
    install(index, tmp_path / "runners", "uv", "pipx")
    commands = tmp_path / "runners/bin"
    only = f"--no-index --find-links {index}"
    runs: dict[str, list[str | Path]] = {
        "uvx": [commands / "uvx", "--python", sys.executable, *only.split(), "--from", PACKAGE],
        "pipx": [
            commands / "pipx",
            "run",
            "--python",
            sys.executable,
            f"--pip-args={only}",
            "--spec",
            PACKAGE,
        ],
    }
    for name, run in runs.items():
        home = tmp_path / name
        home.mkdir()
        environment = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "HOME": str(home),
            "TOOLBELT_HOME": str(home / "data"),
            "PIPX_DEFAULT_BACKEND": "pip",
            "UV_CACHE_DIR": str(home / "cache"),
            "UV_OFFLINE": "1",
        }
        created = subprocess.run(
            [*run, "toolbelt", "init", "--operator", "ada"],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert created.returncode == 0, (name, created.stdout, created.stderr)
        [settings] = (home / "data").glob(".env")
        # The document that the file names is the one of the package that wrote it.
        document = re.search(r"# .*? (/\S+/docs/reference/environment.md) explains", settings.read_text())
        assert document is not None, settings.read_text()
        assert Path(document[1]).read_text() == (ROOT / "docs/reference/environment.md").read_text()
        assert (
            toolbelt.__version__ in next(index.glob(f"{locations.DISTRIBUTION.replace('-', '_')}*.whl")).name
        )
