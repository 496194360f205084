"""The command line: ``toolbelt`` of an installed package, ``manage.py`` of a checkout.

``toolbelt demo`` and ``toolbelt init`` create an installation, so they run before its settings can be read. Every other
command is a management command: ``toolbelt serve`` is ``manage.py serve``.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib.util
import json
import logging
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import toolbelt
from toolbelt import locations

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
# The variables of an installation, apart from those that begin with TOOLBELT_.
_VARIABLES = frozenset(
    {
        "ALLOWED_HOSTS",
        "CSRF_TRUSTED_ORIGINS",
        "DATABASE_URL",
        "DEBUG",
        "DEMO_PASSWORD",
        "DJANGO_SETTINGS_MODULE",
        "FORWARDED_ALLOW_IPS",
        "PROMETHEUS_MULTIPROC_DIR",
        "DEMO_REPOSITORY",
        "REDIS_URL",
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
    }
)
_HOME_VARIABLE = "TOOLBELT_HOME"
_SETTINGS_PAGE = locations.document("reference/environment.md")
# The management commands that run until they are stopped, and log what happens.
_SERVERS = frozenset({"runserver", "run_schedule", "serve"})

_HELP = """\
toolbelt demo      Serve a demo with a filled dashboard on this machine
toolbelt init      Create an installation: its settings, its database and its first operator
toolbelt serve     Serve the installation
toolbelt doctor    Check the installation and suggest fixes
toolbelt backup    Write the whole database into a file; toolbelt restore puts it back
toolbelt surface   Show what the model gets for an agent; toolbelt why explains a tool
toolbelt flip      Turn a toolkit or tool on or off for an agent
toolbelt call      Call a tool as an agent
toolbelt mcp       Add, import, review and refresh upstream MCP servers
toolbelt connect   Print or write the configuration of an MCP client
toolbelt token     Issue and revoke tokens; toolbelt belt exports and imports the configuration
toolbelt COMMAND   Run one of the commands below
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``toolbelt``."""
    command, *command_arguments = [*(sys.argv[1:] if arguments is None else arguments)] or ["help"]
    if command in ("--version", "version"):
        print(f"toolbelt {toolbelt.__version__}")  # noqa: T201
        return
    if importlib.util.find_spec("django") is None:
        sys.exit(
            f"toolbelt: the server is not installed. Run: pip install '{locations.DISTRIBUTION}[server]'"
        )
    own_commands: Mapping[str, Callable[[Sequence[str]], None]] = {"demo": demo, "init": init}
    if command in own_commands:
        _silence_pool()
        with _errors_in_sentences("toolbelt"):
            own_commands[command](command_arguments)
    elif command == "manage":
        manage(["toolbelt", *command_arguments])
    else:
        if command in ("help", "--help", "-h") and not command_arguments:
            print(_HELP)  # noqa: T201
            sys.stdout.flush()
        manage(["toolbelt", command, *command_arguments])


def manage(argv: Sequence[str]) -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")
    if [*argv[1:2]] == ["try"]:
        # It needs no installation: no settings file is read, and nothing has to be set.
        os.environ["TOOLBELT_ENV"] = "test"
    from django.core.management import execute_from_command_line

    if not _SERVERS.intersection(argv[1:2]):
        _silence_pool()
        # It ends soon: looking for garbage among what it imported, again and again and at its end, is a quarter of it.
        gc.set_threshold(50_000)
        atexit.register(gc.freeze)
    if [*argv[1:2]] == ["doctor"] and "--json" in argv:
        _require_settings_as_json()
    with _errors_in_sentences(Path(argv[0]).name):
        execute_from_command_line([*argv])


def _silence_pool() -> None:
    """Keep the warnings of the connection pool out of the output: the command itself says what is wrong."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def _require_settings_as_json() -> None:
    """End the process with the finding of `doctor` if the settings cannot be read: no command can run then."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as error:
        finding = {
            "level": "problem",
            "code": "settings",
            "message": str(error),
            "way_out": f"Set these variables; {_SETTINGS_PAGE} explains all of them.",
        }
        print(json.dumps({"ok": False, "version": toolbelt.__version__, "findings": [finding]}, indent=2))  # noqa: T201
        sys.exit(1)


def demo(arguments: Sequence[str]) -> None:
    """Serve the demo, from a database and a settings file of its own. A later run keeps what was changed."""
    parser = argparse.ArgumentParser(
        prog="toolbelt demo", description="Serve a demo with a filled dashboard."
    )
    parser.add_argument("--port", type=_port, default=8000)
    port = parser.parse_args(arguments).port
    password = os.environ.get("DEMO_PASSWORD") or secrets.token_urlsafe(9)
    plugins_file = os.environ.get("TOOLBELT_PLUGINS_FILE")
    _forget_settings()
    if plugins_file:
        # The only setting that is kept: the demo runs the plugins of that file in place of its own.
        file = Path(plugins_file).expanduser().absolute()
        if not file.is_file():
            sys.exit(
                f"toolbelt: {file} does not exist. Correct TOOLBELT_PLUGINS_FILE, or unset it to run the demo's"
                " plugins."
            )
        os.environ["TOOLBELT_PLUGINS_FILE"] = str(file)
        _say(f"Running the plugins of {file} (TOOLBELT_PLUGINS_FILE) in place of the demo's")
    home = _home()
    file = home / ".demo.env"
    if not file.exists():
        settings = {
            "TOOLBELT_ENV": "demo",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ALLOWED_HOSTS": ",".join(LOCAL_HOSTS),
            "DATABASE_URL": "sqlite:///demo.sqlite3",
            "TOOLBELT_LOG_LEVEL": "WARNING",
            "DEMO_PASSWORD": password,
            "TOOLBELT_PLUGINS_FILE": str(locations.ASSETS / "fixtures/demo/plugins.yaml"),
            "TOOLBELT_PLUGIN_INIT": "start",
            "DEMO_REPOSITORY": str(home / "demo-repository"),
        }
        _write_settings(file, "The demo's settings. Not for production.", settings)
    # Relative to the directory of the installation, as the commands that the demo prints name it.
    _set_up(file.name)
    from django.core.management import call_command

    from toolbelt.management.commands import serve

    serve.check_port("127.0.0.1", port)
    _say(f"Preparing the database {file.parent / 'demo.sqlite3'}")
    call_command("migrate", verbosity=0)
    address = f"http://127.0.0.1:{port}/"
    call_command("demo", address=address)
    call_command("serve", port=port)


def init(arguments: Sequence[str]) -> None:
    """Create an installation for production: its settings file, its database and its first operator."""
    parser = argparse.ArgumentParser(prog="toolbelt init", description=init.__doc__)
    parser.add_argument(
        "--host",
        action="append",
        help="a host name that the installation is reached by, over HTTPS; can be repeated"
        " (default: this machine only, over plain HTTP)",
    )
    parser.add_argument(
        "--database-url",
        default=os.environ.get("DATABASE_URL") or "sqlite:///db.sqlite3",
        help="such as postgres://user:password@host/name (default: DATABASE_URL, or a SQLite file)",
    )
    parser.add_argument("--operator", default="operator", help="the name of the first operator")
    parser.add_argument(
        "--password",
        default=os.environ.get("OPERATOR_PASSWORD", ""),
        help="the operator's password (default: OPERATOR_PASSWORD, or a random password, which is printed)",
    )
    options = parser.parse_args(arguments)
    _check_hosts(options.host or ())
    _forget_settings()
    file = _home() / ".env"
    if file.exists():
        sys.exit(
            f"toolbelt: {file} exists already. Edit it, or set TOOLBELT_HOME to the directory of another"
            " installation."
        )
    settings = {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ALLOWED_HOSTS": ",".join(options.host or LOCAL_HOSTS),
        "DATABASE_URL": options.database_url,
    }
    if not options.host:
        settings["TOOLBELT_INSECURE_HTTP"] = "on"
    # It becomes the settings file once everything has succeeded, so that `init` can be run again after an error.
    draft = file.with_name(".env.new")
    draft.unlink(missing_ok=True)
    try:
        _write_settings(
            draft,
            f"The installation's settings. {_SETTINGS_PAGE} explains all variables.",
            settings,
        )
        _set_up(draft.name)
        password = _fill(options.operator, options.password)
        draft.rename(file)
    finally:
        draft.unlink(missing_ok=True)
    # Without the name and the password.
    database = re.sub("//.*@", "//", options.database_url)
    print(f"\n  Settings   {file}\n  Database   {database}")  # noqa: T201
    print(f"  Login      {options.operator}" + ("" if options.password else f", password {password}"))  # noqa: T201
    print(f"  Serve      {_shown_command()} serve")  # noqa: T201
    print(f"  Guide      {locations.document('first-hour.md')}\n")  # noqa: T201


def _check_hosts(hosts: Iterable[str]) -> None:
    from toolbelt.core import addresses

    for host in hosts:
        if not addresses.is_host_name(host):
            sys.exit(
                f"toolbelt: {host!r} is not a host name. Write it as in toolbelt.example.com: without https://, port"
                " and path."
            )


def _shown_command() -> str:
    """Return the command of the new installation as it can be pasted into the shell that `init` was run in."""
    from toolbelt.settings import shown_command

    # Without TOOLBELT_ENV_FILE, because it reads its own `.env`.
    environ = {name: os.environ[name] for name in ("PATH", _HOME_VARIABLE) if name in os.environ}
    return shown_command.derive(
        locations.home(), prefix=sys.prefix, environ=environ, is_checkout=locations.IS_CHECKOUT
    )


def _fill(operator: str, password: str) -> str:
    """Create the tables, collect the static files and create the operator. Return the operator's password."""
    from django.contrib.auth import get_user_model, password_validation
    from django.core.exceptions import ValidationError
    from django.core.management import call_command

    if password:
        try:
            password_validation.validate_password(password)
        except ValidationError as error:
            sys.exit(f"toolbelt: choose another password. {' '.join(error.messages)}")
    password = password or secrets.token_urlsafe(12)
    _say("Creating the tables of the database")
    call_command("migrate", verbosity=0)
    _say("Collecting the static files")
    call_command("collectstatic", interactive=False, verbosity=0)
    users = get_user_model().objects
    if users.filter(username=operator).exists():
        sys.exit(
            f"toolbelt: the database already has a user {operator!r}. Choose another name with --operator,"
            " or another database with --database-url."
        )
    users.create_superuser(operator, password=password)
    return password


def _home() -> Path:
    home = locations.home()
    try:
        # A SQLite database is in it.
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(
            f"toolbelt: {home} cannot be created ({error.strerror}). Set TOOLBELT_HOME to another directory."
        )
    return home


def _forget_settings() -> None:
    """Remove the settings of another installation from the environment."""
    for name in [*os.environ]:
        if name in _VARIABLES or (name.startswith("TOOLBELT_") and name != _HOME_VARIABLE):
            del os.environ[name]


def _write_settings(file: Path, title: str, settings: Mapping[str, str]) -> None:
    """Write a settings file that only its owner can read. Values contain no quotes or line breaks."""
    for name, value in settings.items():
        if "'" in value or "\n" in value:
            sys.exit(f"toolbelt: {name} must not contain a quote or a line break.")
    lines = [f"# {title}", *(f"{name}='{value}'" for name, value in settings.items())]
    with open(file, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
        opened.write("\n".join([*lines, ""]))


def _set_up(file: str) -> None:
    """Set Django up with a settings file in the directory of the installation."""
    os.environ["TOOLBELT_ENV_FILE"] = file
    os.environ["DJANGO_SETTINGS_MODULE"] = "toolbelt.settings"
    import django

    django.setup()


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: choose a number from 1 to 65535")
    return int(text)


def _say(text: str) -> None:
    print(f"==> {text}", flush=True)  # noqa: T201


@contextlib.contextmanager
def _errors_in_sentences(program: str) -> Iterator[None]:
    """End the process with a sentence in place of a traceback where the user can do something about an error."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management.base import CommandError

    try:
        try:
            yield
        except CommandError as error:
            sys.exit(f"CommandError: {error}")
        except (ImproperlyConfigured, BrokenPipeError):
            raise
        except Exception as error:
            if not (reason := _unavailable(error)):
                raise
            sys.exit(f"CommandError: {reason}")
        finally:
            sys.stdout.flush()  # Here, where a reader that has left is handled.
    except ImproperlyConfigured as error:
        sys.exit(f"{program}: {error}")
    except BrokenPipeError:
        # The reader has left, as in `manage.py mcp review files | head`. The rest of the buffer is discarded, so that
        # Python does not complain at exit; the exit code is the one that shells expect.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + 13)  # SIGPIPE


def _unavailable(error: Exception) -> str:
    """Return why the database cannot be used, and the way out; empty if the error is another one."""
    from django.apps import apps

    if not apps.ready:
        return ""
    from toolbelt.control.doctor import database
    from toolbelt.runtime import availability

    if (unavailable := availability.classify(error)) is None:
        return ""
    # A person who runs a command may read more than an agent: the message of the database's driver.
    finding = database.unreachable()
    return str(unavailable) if finding is None else f"{finding.message} {finding.way_out}"
