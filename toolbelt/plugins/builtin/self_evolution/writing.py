"""How does a change become a commit on an agent's own branch? Here stands the guard that no policy text replaces.

1. Only a branch with the operator's prefix moves, and only one that nobody has checked out and that stands for itself
   (no symbolic ref, through which another would move).
2. Whatever made the tree, all paths in which it differs are looked at, and one protected path refuses the whole.
3. The trail has its entry before the branch moves.
4. The branch moves from the commit that was read, in one step, or not at all.
"""

from __future__ import annotations

import os
import tempfile
import threading
import unicodedata
from collections.abc import Callable
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import edits, git, names, reading, settings, trail

MOST_PATHS = 1_000


class Writer:
    """Writes to one repository, one after the other; other processes are met by rule 4."""

    def __init__(
        self, repository: git.Git, configured: settings.Settings, runtime: toolbelt.RuntimeAPI
    ) -> None:
        self._repository = repository
        self._settings = configured
        self._runtime = runtime
        self._lock = threading.Lock()

    def write(
        self, tool: str, branch: str, message: str, head: str, make: Callable[[str], list[edits.Change]]
    ) -> dict[str, Any]:
        """Commit the changes that ``make`` works out from the commit where the branch stands (or will begin)."""

        def tree(parent: str) -> str:
            with tempfile.TemporaryDirectory(prefix="toolbelt-index-") as directory:
                return edits.tree(self._repository, parent, make(parent), os.path.join(directory, "index"))

        return self._commit(tool, branch, message, head, tree)

    def revert(self, tool: str, branch: str, undone: str, reason: str) -> dict[str, Any]:
        """Commit the opposite of a commit, merged with what came after it; a conflict changes nothing."""
        repository = self._repository
        parents = repository.objects("rev-list", "--parents", "--max-count=1", undone, "--").output.split()[
            1:
        ]
        if len(parents) != 1:
            what = "a merge" if parents else "the first commit"
            raise toolbelt.ToolError(f"{undone[:12]} is {what}, which cannot be reverted as a whole.")
        before = parents[0].decode()
        subject = _subject(repository, undone)

        def tree(parent: str) -> str:
            if repository.objects("merge-base", "--is-ancestor", undone, parent, expected=(0, 1)).code:
                raise toolbelt.ToolError(f"{undone[:12]} is not on {branch}.")
            # merge-tree finds a merge's base by itself: so the three trees are given a history that has one.
            base = self._lone(f"{undone}^{{tree}}")
            ours, theirs = self._lone(f"{parent}^{{tree}}", base), self._lone(f"{before}^{{tree}}", base)
            merged = repository.objects(
                *("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs),
                expected=(0, 1),
            )
            found = merged.output.decode(errors="replace").strip("\0").split("\0")
            if merged.code:
                raise toolbelt.ToolError(
                    f"Later commits changed the same lines of {', '.join(found[1:])}. Nothing was changed."
                )
            return found[0]

        message = f'Revert "{subject}"\n\nThis reverts commit {undone}.\n\n{reason}'
        return self._commit(tool, branch, message, "", tree)

    def stands_at(self, branch: str) -> str | None:
        """Say where the branch stands; None where there is none yet. Refuses one that may not be moved."""
        names.branch(branch, self._settings.branch_prefix)
        ref = f"refs/heads/{branch}"
        if self._repository.refs("symbolic-ref", "--quiet", ref, expected=(0, 1, 128)).code == 0:
            raise toolbelt.ToolError(f"{branch} only stands for another branch, and is not written to.")
        trees = self._repository.refs("worktree", "list", "--porcelain", "-z").output.split(b"\0")
        if f"branch {ref}".encode() in trees:
            raise toolbelt.ToolError(f"Somebody has {branch} checked out: choose another branch.")
        return reading.find(self._repository, ref)

    def _commit(
        self, tool: str, branch: str, message: str, head: str, make_tree: Callable[[str], str]
    ) -> dict[str, Any]:
        repository = self._repository
        said = _checked(message)
        with self._lock:
            old = self.stands_at(branch)
            parent = old or reading.commit(repository, self._settings.base)
            if head and not parent.startswith(names.commit(head)):
                raise toolbelt.ToolError(f"{branch} stands at {parent[:12]}, not at {head}: read it again.")
            tree = make_tree(parent)
            paths = self._changed(parent, tree)
            commit = self._made(tree, parent, said)
            entry = trail.Entry(
                runtime=self._runtime,
                tool=tool,
                branch=branch,
                before=old or "",
                commit=commit,
                paths=paths,
                subject=said.split("\n")[0],
            )
            entry.begin()
            try:
                moved = repository.refs(
                    *(
                        "update-ref",
                        "--no-deref",
                        "--create-reflog",
                        "-m",
                        f"{tool}: {said.split(chr(10))[0]}",
                    ),
                    *(f"refs/heads/{branch}", commit, old or "0" * len(commit)),
                    expected=(0, 1, 128),
                )
            except BaseException:
                entry.end("unknown")
                raise
            if moved.code:
                entry.end("refused")
                raise toolbelt.ToolError(
                    f"{branch} was moved in the meantime, or another branch is in the way of its name. "
                    "Nothing was changed: read it again."
                )
            entry.end("written")
        return {"branch": branch, "commit": commit, "before": parent, "paths": paths, "created": old is None}

    def _changed(self, parent: str, tree: str) -> list[str]:
        """Give every path in which the tree differs, once all of them may be written."""
        found = self._repository.objects(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", parent, tree, "--"
        )
        try:
            paths = found.output.decode().strip("\0").split("\0")
        except UnicodeDecodeError:
            raise toolbelt.ToolError(
                "A file's name that is no text would change: that is not done here."
            ) from None
        if paths == [""]:
            raise toolbelt.ToolError("That changes nothing: the branch holds it already.")
        if found.cut or len(paths) > MOST_PATHS:
            raise toolbelt.ToolError(f"That changes more than {MOST_PATHS} files: make smaller commits.")
        names.guard(paths, self._settings.protected_paths)
        return paths

    def _made(self, tree: str, parent: str, message: str) -> str:
        call = self._runtime.call
        agent = _one_line(call.agent) if call else "unknown"
        lines = [f"Toolbelt-Agent: {agent}"]
        if call and call.session:
            lines.append(f"Toolbelt-Session: {_one_line(call.session)}")
        given = f"{message}\n\n{chr(10).join(lines)}\n".encode()
        who = {
            "GIT_AUTHOR_NAME": f"{agent} (agent)",
            "GIT_AUTHOR_EMAIL": "agent@toolbelt.invalid",
            "GIT_COMMITTER_NAME": "Toolbelt",
            "GIT_COMMITTER_EMAIL": "toolbelt@toolbelt.invalid",
        }
        made = self._repository.objects("commit-tree", tree, "-p", parent, given=given, more=who)
        return made.output.decode().strip()

    def _lone(self, tree: str, *parents: str) -> str:
        """Make a commit that no branch will ever have, only to say what came before what."""
        who = {
            f"GIT_{role}_{part}": "merge" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
        }
        name = (
            self._repository.objects("rev-parse", "--verify", "--end-of-options", tree)
            .output.decode()
            .strip()
        )
        above = [part for parent in parents for part in ("-p", parent)]
        made = self._repository.objects("commit-tree", name, *above, given=b"merge\n", more=who)
        return made.output.decode().strip()


def _subject(repository: git.Git, commit: str) -> str:
    found = repository.objects("log", "--max-count=1", "--format=%s", "--no-show-signature", commit, "--")
    return _one_line(found.output.decode(errors="replace"))


def _checked(message: str) -> str:
    """Give the message without space around it; it is text, and has a subject."""
    said = message.replace("\r\n", "\n").strip()
    if not said or any(
        unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in said
    ):
        raise toolbelt.ToolError(
            "A commit's message is text without control characters, with a subject line."
        )
    return said


def _one_line(text: str) -> str:
    """Give the text so that it stays on its line, and in UTF-8."""
    kept = "".join(" " if unicodedata.category(character)[0] == "C" else character for character in text)
    return " ".join(kept.replace("<", " ").replace(">", " ").split())[:200]
