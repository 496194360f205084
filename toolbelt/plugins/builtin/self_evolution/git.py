"""How is git asked, so that nothing of the repository's own runs?

A repository's config can name programs for almost everything git does, and its hooks are programs. So objects are read
and made from a bare directory of our own, which borrows the repository's objects and has none of its config, hooks
and attributes; the repository itself is only asked where its branches stand and told where one is to stand, with
hooks off. Neither touches a work tree, where filters would run. Arguments are lists, and no prompt ever waits.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import toolbelt
from toolbelt.plugins.builtin.self_evolution import processes, settings

OLDEST = (2, 38)
SECONDS = 20.0
MOST = 60_000_000

_ALWAYS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.protectHFS=true"),
    *("-c", "core.protectNTFS=true"),
    *("-c", "protocol.allow=never"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    # The operator named this repository: whose user it belongs to does not matter where nothing of it runs.
    *("-c", "safe.directory=*"),
)

_RECEIVE_HERE = "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true receive-pack"
_WHERE = (
    "rev-parse",
    "--path-format=absolute",
    "--absolute-git-dir",
    "--git-path",
    "objects",
    "--show-object-format",
)


class GitFailed(Exception):
    """git refused what should have gone well; for the log, as its words may tell a path of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """One repository. ``own`` is our bare directory, ``directory`` the repository's git directory."""

    program: str
    own: str
    directory: str
    objects_in: str

    def objects(
        self,
        *arguments: str,
        given: bytes = b"",
        expected: Sequence[int] = (0,),
        more: Mapping[str, str] | None = None,
    ) -> processes.Finished:
        """Read or make objects. An exit code that is not ``expected`` raises."""
        around = {"GIT_DIR": self.own, "GIT_OBJECT_DIRECTORY": self.objects_in, **(more or {})}
        shallow = os.path.join(self.directory, "shallow")
        if os.path.exists(shallow):
            around["GIT_SHALLOW_FILE"] = shallow
        return self._run(arguments, around, given, expected)

    def refs(self, *arguments: str, expected: Sequence[int] = (0,)) -> processes.Finished:
        """Ask where branches stand, or move one."""
        return self._run(arguments, {"GIT_DIR": self.directory}, b"", expected)

    def push(self, url: str, commit: str, branch: str) -> processes.Finished:
        """Send a commit to a branch elsewhere, never by force.

        Here the account's own git config counts, as it knows the credentials; the repository's still does not. Where
        the address is a directory of this machine, git runs the receiving end too, with that repository's hooks:
        as it was the repository's config that named it, they are off as well.
        """
        is_local = url.startswith(("/", "file:"))
        around = environment(self.own)
        around |= {"GIT_DIR": self.own, "GIT_OBJECT_DIRECTORY": self.objects_in}
        around |= {key: os.environ[key] for key in ("HOME", "SSH_AUTH_SOCK") if key in os.environ}
        around.pop("GIT_CONFIG_GLOBAL")
        around["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
        allowed = [
            part for kind in ("https", "ssh", "file") for part in ("-c", f"protocol.{kind}.allow=always")
        ]
        command = [self.program, *_ALWAYS, *allowed, "push", "--quiet", "--no-verify", "--no-signed"]
        command += [
            f"--receive-pack={_RECEIVE_HERE if is_local else 'git-receive-pack'}",
            "--",
            url,
            f"{commit}:refs/heads/{branch}",
        ]
        return processes.run(
            command, directory=self.own, environment=around, seconds=SECONDS * 3, most=10_000
        )

    def close(self) -> None:
        """Remove our own directory; the repository keeps every object and branch."""
        shutil.rmtree(self.own, ignore_errors=True)

    def _run(
        self, arguments: Sequence[str], around: Mapping[str, str], given: bytes, expected: Sequence[int]
    ) -> processes.Finished:
        return checked([self.program, *_ALWAYS, *arguments], self.own, around, given, expected)


def opened(repository: str) -> Git:
    """Find the repository in exactly this directory, and make our own beside it. Raises Unsound in a sentence."""
    program = shutil.which("git")
    if program is None:
        raise settings.Unsound("self_evolution needs git, and there is none on the server's search path.")
    own = tempfile.mkdtemp(prefix="toolbelt-git-")
    try:
        said = checked([program, "--version"], own).output.decode()
        version = re.search(r"(\d+)\.(\d+)", said)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise settings.Unsound(f"self_evolution needs git 2.38 or newer; this is {said.strip()!r}.")
        try:
            found = checked(
                [program, *_ALWAYS, "-C", repository, *_WHERE],
                own,
                # Without a ceiling, git would look for a repository further up.
                {"GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(repository))},
            )
        except GitFailed:
            raise settings.Unsound(
                f"{repository!r} is not a git repository: name one as repository."
            ) from None
        directory, objects, form = found.output.decode().splitlines()
        checked(
            [program, *_ALWAYS, "init", "--quiet", "--bare", "--template=", f"--object-format={form}", own],
            own,
        )
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise
    return Git(program=program, own=own, directory=directory, objects_in=objects)


def environment(home: str) -> dict[str, str]:
    """Give all that git may know of its surroundings."""
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


def checked(
    command: Sequence[str],
    own: str,
    more: Mapping[str, str] | None = None,
    given: bytes = b"",
    expected: Sequence[int] = (0,),
) -> processes.Finished:
    """Run git to its end; late is the model's to read, and an unexpected code the operator's."""
    around = {**environment(own), **(more or {})}
    found = processes.run(command, directory=own, environment=around, seconds=SECONDS, most=MOST, given=given)
    if found.late:
        raise toolbelt.ToolError(f"git took longer than {SECONDS:.0f} seconds and was stopped: ask for less.")
    if not found.cut and found.code not in expected:
        raise GitFailed(
            f"git {' '.join(command[1 + len(_ALWAYS) :])}: {found.errors.decode(errors='replace').strip()}"
        )
    return found
