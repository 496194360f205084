"""Build docs/deploy/Containerfile without a container engine, start the image, and use it as an operator would.

Needs root, debootstrap and unshare. Each stage is a root file system created by debootstrap, in which the file's
instructions run (Debian 12 has Python 3.11). The server runs as the image's user, in its own namespaces, and can write
only to /data and /tmp, as with a read-only root file system.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The variable with the path of pip's certificates, if they are not the system's.
_CERTIFICATES = "PIP_CERT"
FILE = ROOT / "docs/deploy/Containerfile"
PACKAGES = "python3,python3-venv,ca-certificates"
PORT = 8000
PASSWORD = secrets.token_urlsafe(12)
SETTINGS = {
    "ALLOWED_HOSTS": "localhost,127.0.0.1",
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz-of-the-container-check",
    "TOOLBELT_INSECURE_HTTP": "on",
}


class Image:
    """A stage of the file: its root file system, and the settings of the instructions so far."""

    def __init__(self, root: Path) -> None:
        self.root, self.workdir, self.user = root, "/", "0"
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.command: list[str] = []
        self.check: list[str] = []

    def run(
        self, command: list[str], more: Mapping[str, str], options: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a command in the image, in a new process namespace."""
        inside = ["chroot", *options, str(self.root), "env", "-C", self.workdir, *command]
        isolated = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc=" + str(self.root / "proc"),
        ]
        return subprocess.Popen([*isolated, *inside], env={**self.environment, **more})


def build(base: Path, work: Path) -> Image:
    """Build the stages of the file, and return the last."""
    stages: dict[str, Image] = {}
    image = None
    text = FILE.read_text().replace("\\\n", " ")
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line.startswith("#"):
            continue
        print(f"==> {line[:110]}", flush=True)
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            name = rest.partition(" AS ")[2] or "final"
            image = stages[name] = Image(work / name)
            _copy(base, image.root)
            for program in ("python", "python3"):
                with contextlib.suppress(FileExistsError):
                    (image.root / "usr/local/bin" / program).symlink_to("/usr/bin/python3")
            continue
        if image is None:
            sys.exit(f"{line!r} precedes FROM")
        _apply(image, instruction, rest, stages)
    if image is None:
        sys.exit(f"{FILE} has no stage")
    return image


def _apply(image: Image, instruction: str, rest: str, stages: Mapping[str, Image]) -> None:
    match instruction:
        case "WORKDIR":
            image.workdir = rest
            (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            image.user = rest
        case "ENV":
            for name, value in (pair.split("=", 1) for pair in shlex.split(rest)):
                image.environment[name] = re.sub(
                    r"\$(\w+)", lambda match: image.environment.get(match[1], ""), value
                )
        case "COPY":
            *sources, target = rest.split()
            origin = ROOT
            if sources[0].startswith("--from="):
                origin = stages[sources.pop(0).removeprefix("--from=")].root
            for source in sources:
                path = image.root / Path(image.workdir, target).as_posix().lstrip("/")
                origin_path = origin / source.lstrip("/")
                if origin_path.is_dir():
                    _copy(origin_path, path)
                else:
                    path = path / origin_path.name if target.endswith("/") else path
                    path.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(origin_path, path)
        case "RUN":
            # The settings for this machine's package index are not part of the image.
            index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
            if image.run(["sh", "-c", rest], index).wait():
                sys.exit(f"failed: {rest}")
        case "CMD":
            image.command = json.loads(rest)
        case "HEALTHCHECK":
            image.check = json.loads(rest.partition("CMD ")[2])
        case "VOLUME" | "EXPOSE":
            pass
        case _:
            sys.exit(f"{instruction} is not supported here")


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


@contextlib.contextmanager
def read_only(image: Image) -> Iterator[None]:
    """Mount the root file system read-only over itself, with writable /data and /tmp."""
    root = image.root
    mounts: list[str] = []

    def mount(*arguments: str) -> None:
        subprocess.run(["mount", *arguments], check=True)
        mounts.append(arguments[-1])

    try:
        mount("--bind", str(root), str(root))
        mount("-t", "tmpfs", "-o", f"uid={image.user},mode=700", "data", str(root / "data"))
        mount("-t", "tmpfs", "tmp", str(root / "tmp"))
        for device in ("null", "urandom"):
            (root / "dev" / device).touch()
            mount("--bind", f"/dev/{device}", str(root / "dev" / device))
        mount("-o", "remount,bind,ro", str(root))
        mounts.pop()
        yield
    finally:
        for mount_point in reversed(mounts):
            subprocess.run(["umount", "-l", mount_point], check=False)


def use(image: Image) -> None:
    """Migrate, serve, and use the image. Exit with a message if a check fails."""
    as_user = (f"--userspec={image.user}:{image.user}",)

    def run(*command: str, **more: str) -> int:
        return image.run([*command], {**SETTINGS, **more}, as_user).wait()

    _expect(
        run("sh", "-c", "echo x > /opt/toolbelt/written 2>/dev/null") != 0,
        "the root file system is read-only",
    )
    _expect(run("toolbelt", "serve") != 0, "a database without tables is not served")
    _expect(run("toolbelt", "migrate", "--verbosity", "0") == 0, "migrate runs as its own step")
    _expect(
        run("toolbelt", "createsuperuser", "--no-input", "--username", "olive", "--email", "olive@example.com",
            DJANGO_SUPERUSER_PASSWORD=PASSWORD) == 0,
        "an operator is created",
    )  # fmt: skip
    _expect(
        run("toolbelt", "loaddata", "demo", "--verbosity", "0", TOOLBELT_ENV="demo") == 0,
        "the demo's data is loaded",
    )
    server = image.run(image.command, SETTINGS, as_user)
    try:
        _wait()
        _expect(run(*image.check) == 0, "the health check passes")
        _expect(_status("/readyz") == 200, "the server is ready")
        _expect(_status("/login/") == 200, "the login page is served")
        _expect(_status("/api/v1/agents/assistant/surface") == 401, "a surface needs a token")
        before = _surface(image, as_user)
        _expect(
            run("toolbelt", "flip", "assistant", "academic_papers", "on", "--confirm") == 0,
            "a toolkit is flipped",
        )
        _expect(_surface(image, as_user) != before, "the next surface has changed by the flip")
    finally:
        started = time.monotonic()
        for child in _children(server.pid):
            os.kill(child, signal.SIGTERM)
        code = server.wait(90)
    _expect(code in (0, 143, -15), f"SIGTERM ends the server ({code}, {time.monotonic() - started:.1f} s)")


def _surface(image: Image, options: tuple[str, ...]) -> bytes:
    inside = ["chroot", *options, str(image.root), "toolbelt", "surface", "assistant"]
    return subprocess.run(
        inside, env={**image.environment, **SETTINGS}, capture_output=True, check=True
    ).stdout


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait() -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            if _status("/healthz") == 200:
                return
        time.sleep(0.2)
    sys.exit("the server does not respond")


def _status(path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def _expect(is_met: bool, description: str) -> None:
    print(f"{'ok' if is_met else 'FAILED'}: {description}", flush=True)
    if not is_met:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "directory", type=Path, help="where to create the file systems; those of an earlier run are removed"
    )
    parser.add_argument("--mirror", help="the mirror for debootstrap (default: its own)")
    arguments = parser.parse_args()
    base, work = arguments.directory / "base", arguments.directory / "work"
    if not (base / "etc/debian_version").exists():
        options = ["--variant=minbase", f"--include={PACKAGES}", "bookworm", str(base)]
        subprocess.run(["debootstrap", *options, *filter(None, [arguments.mirror])], check=True)
    shutil.rmtree(work, ignore_errors=True)
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    for file in (
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/pip.conf",
        os.environ.get(_CERTIFICATES, certificates),
    ):
        with contextlib.suppress(FileNotFoundError):
            (base / file.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, base / file.lstrip("/"))
    image = build(base, work)
    with read_only(image):
        use(image)


if __name__ == "__main__":
    main()
