"""Run git without running any program that the repository configures.

A repository's config can name programs for almost everything that git does, and its hooks are programs. Objects are
therefore read and created from a separate bare directory, which borrows the repository's objects but none of its
config, hooks and attributes. The repository itself is only used to read and move its branches, with hooks off. Neither
touches a work tree, where filters would run. Arguments are lists, and git never prompts.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import toolbelt
from toolbelt.plugins import config
from toolbelt.plugins.builtin.self_evolution import processes

MIN_VERSION = (2, 38)
SECONDS = 20.0
MAX_BYTES = 60_000_000

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    # The operator chose this repository, and none of its programs run, so its owner does not matter.
    "safe.directory=*",
)
_GIT = ["git", *(part for pair in _CONFIG for part in ("-c", pair))]
_PUSH = [part for name in ("https", "ssh", "file") for part in ("-c", f"protocol.{name}.allow=always")]
_RECEIVE_HERE = "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true receive-pack"
# git knows addresses that run a program (ext::), and ssh takes options for hosts: neither begins like one of these.
_ADDRESS = re.compile(
    r"(?:https://[A-Za-z0-9]|ssh://[A-Za-z0-9]|file:///|/|[A-Za-z0-9_.][A-Za-z0-9_.-]*@[A-Za-z0-9])\S*"
)


class GitError(Exception):
    """git failed unexpectedly. For the log only, because the message may contain a path of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository: ``directory`` is its git directory, ``scratch`` a bare one that uses ``object_store``."""

    directory: str
    object_store: str
    scratch: str

    def objects(
        self,
        *arguments: str,
        stdin_data: bytes = b"",
        expected: Sequence[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> processes.Finished:
        """Read or create objects. Raise GitError for an exit code that is not ``expected``."""
        return _run(
            arguments, self.scratch, {**self._borrowed(), **(environment or {})}, stdin_data, expected
        )

    def text(
        self, *arguments: str, stdin_data: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> str:
        """Return the output of a command on objects, as text."""
        finished = self.objects(*arguments, stdin_data=stdin_data, environment=environment)
        return finished.output.decode(errors="replace").strip()

    def refs(self, *arguments: str, expected: Sequence[int] = (0,)) -> processes.Finished:
        """Read where branches are, or move a branch."""
        return _run(arguments, self.scratch, {"GIT_DIR": self.directory}, b"", expected)

    def push(self, remote: str, branch: str, commit: str) -> None:
        """Push the commit to the branch of that name, never by force. Raise ToolError if that fails.

        The account's git config applies, because it has the credentials; the repository's config still does not. If the
        address is a directory on this machine, git also runs the receiving end, with its hooks off.
        """
        address = (
            self.refs("config", "--get", f"remote.{remote}.url", expected=(0, 1)).output.decode().strip()
        )
        if not address:
            raise toolbelt.ToolError(f"The repository has no remote {remote!r}. An operator can add it.")
        if not _ADDRESS.fullmatch(address) or "::" in address:
            raise toolbelt.ToolError(f"Pushing to the address of the remote {remote!r} is not allowed.")
        environment = {
            **_environment(self.scratch),
            **self._borrowed(),
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        }
        environment |= {key: os.environ[key] for key in ("HOME", "SSH_AUTH_SOCK") if key in os.environ}
        del environment["GIT_CONFIG_GLOBAL"]
        receive = _RECEIVE_HERE if address.startswith(("/", "file:")) else "git-receive-pack"
        options = ["--quiet", "--no-verify", "--no-signed", f"--receive-pack={receive}", "--"]
        pushed = processes.run(
            [*_GIT, *_PUSH, "push", *options, address, f"{commit}:refs/heads/{branch}"],
            directory=self.scratch,
            environment=environment,
            seconds=SECONDS * 3,
            max_bytes=MAX_BYTES,
        )
        if pushed.is_timed_out:
            raise toolbelt.ToolError("The remote did not answer in time. The commit is on the branch here.")
        if pushed.code != 0:
            is_behind = b"non-fast-forward" in pushed.errors or b"fetch first" in pushed.errors
            why = "it has commits that are not here" if is_behind else "the server's log may say why"
            raise toolbelt.ToolError(f"The remote refused the push: {why}. The commit is on the branch here.")
        tracking = f"refs/remotes/{remote}/{branch}"
        self.refs("update-ref", "--no-deref", tracking, commit, expected=(0, 1, 128))

    def close(self) -> None:
        """Remove the bare directory. The repository keeps all objects and branches."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _borrowed(self) -> dict[str, str]:
        shallow = os.path.join(self.directory, "shallow")
        borrowed = {"GIT_DIR": self.scratch, "GIT_OBJECT_DIRECTORY": self.object_store}
        return {**borrowed, "GIT_SHALLOW_FILE": shallow} if os.path.exists(shallow) else borrowed


def open_repository(path: str) -> Repository:
    """Return the repository in exactly this directory. Raise ConfigError if there is none, or git is too old."""
    scratch = tempfile.mkdtemp(prefix="toolbelt-git-")
    try:
        try:
            version = _run(["--version"], scratch).output.decode()
        except FileNotFoundError:
            version = "none"
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < MIN_VERSION:
            raise config.ConfigError(
                f"self_evolution requires git 2.38 or newer. Installed: {version.strip()}."
            )
        options = (
            "--path-format=absolute",
            "--absolute-git-dir",
            "--git-path",
            "objects",
            "--show-object-format",
        )
        # Without a ceiling, git would look for a repository further up.
        ceiling = {"GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(path))}
        try:
            answer = _run(["-C", path, "rev-parse", *options], scratch, ceiling)
        except GitError:
            raise config.ConfigError(
                f"{path!r} is not a git repository. Set repository to the path of one."
            ) from None
        directory, object_store, object_format = answer.output.decode().splitlines()
        _run(
            ["init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", scratch], scratch
        )
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Repository(directory=directory, object_store=object_store, scratch=scratch)


def _environment(home: str) -> dict[str, str]:
    """Return the complete environment of git."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": home,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
    }


def _run(
    arguments: Sequence[str],
    scratch: str,
    environment: Mapping[str, str] | None = None,
    stdin_data: bytes = b"",
    expected: Sequence[int] = (0,),
) -> processes.Finished:
    finished = processes.run(
        [*_GIT, *arguments],
        directory=scratch,
        environment={**_environment(scratch), **(environment or {})},
        seconds=SECONDS,
        max_bytes=MAX_BYTES,
        stdin_data=stdin_data,
    )
    if finished.is_timed_out:
        raise toolbelt.ToolError(f"git was stopped after {SECONDS:.0f} seconds. Request less at a time.")
    if not finished.is_truncated and finished.code not in expected:
        raise GitError(f"git {' '.join(arguments)}: {finished.errors.decode(errors='replace').strip()}")
    return finished
