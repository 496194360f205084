"""Commit a change to an agent's own branch, and enforce the rules for it:

1. Only a branch with the operator's prefix moves, and only if it is not checked out and not a symbolic ref, through
   which another branch would move.
2. Whatever made the tree, all paths that differ are checked, and one protected path refuses the whole commit.
3. The audit entry is stored before the branch moves.
4. The branch moves from the commit that was read, in one step, or not at all.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import toolbelt
from toolbelt.plugins.builtin.self_evolution import commits, git, names, settings

MAX_PATHS = 1_000

# A file's mode and bytes by its path; None: the file is deleted.
Changes = Mapping[str, tuple[str, bytes] | None]


class Writer:
    """Writes to one repository, one write at a time; rule 4 covers other processes."""

    def __init__(
        self, repository: git.Repository, configured: settings.Settings, runtime: toolbelt.RuntimeAPI
    ) -> None:
        self._repository, self._settings, self._runtime = repository, configured, runtime
        self._lock = threading.Lock()

    def commit(
        self, tool: str, branch: str, message: str, head: str | None, change: Callable[[str], Changes]
    ) -> dict[str, Any]:
        """Commit the changes that ``change`` returns for the commit that the branch is at, or will start at."""
        return self._commit(tool, branch, message, head, lambda parent: self.tree(parent, change(parent)))

    def revert(self, tool: str, branch: str, undone: str, reason: str) -> dict[str, Any]:
        """Commit the opposite of a commit, merged with later ones. Raise ToolError if they conflict."""
        repository = self._repository
        parents = repository.text("rev-list", "--parents", "--max-count=1", undone, "--").split()[1:]
        if len(parents) != 1:
            description = "a merge" if parents else "the first commit"
            raise toolbelt.ToolError(f"{undone[:12]} is {description}, which cannot be reverted as a whole.")
        opposite = ("diff-tree", "-p", "--full-index", "--no-renames", undone, parents[0])
        difference = repository.objects(*opposite)
        if difference.is_cut:
            raise toolbelt.ToolError(f"{undone[:12]} is too large to be reverted.")
        patch = difference.output

        def tree(parent: str) -> str:
            if repository.objects("merge-base", "--is-ancestor", undone, parent, expected=(0, 1)).code:
                raise toolbelt.ToolError(f"{undone[:12]} is not on {branch}.")
            with self._index(parent) as index:
                options = ("--cached", "--3way", "--allow-empty", "--whitespace=nowarn")
                applied = repository.objects(
                    "apply", *options, stdin_data=patch, expected=(0, 1), environment=index
                )
                if applied.code:
                    conflicts = repository.text(
                        "diff", "--cached", "-z", "--name-only", "--diff-filter=U", environment=index
                    )
                    files = ", ".join(filter(None, conflicts.split("\0"))) or "its files"
                    raise toolbelt.ToolError(
                        f"Later commits changed the same lines of {files}. Nothing was changed."
                    )
                return repository.text("write-tree", environment=index)

        subject = _one_line(commits.log(repository, undone, 1)[0]["subject"])
        message = f'Revert "{subject}"\n\nThis reverts commit {undone}.\n\n{reason}'
        return self._commit(tool, branch, message, None, tree)

    def push(self, tool: str, branch: str, commit: str) -> None:
        """Push the branch, with an audit entry. Raise ToolError if the remote refuses it."""
        end = self._audit("push", tool=tool, branch=branch, before="", commit=commit, paths=[], subject="")
        try:
            self._repository.push(self._settings.remote, branch, commit)
        except toolbelt.ToolError:
            end("refused")
            raise
        end("written")

    def position(self, branch: str) -> str | None:
        """Return the commit of the branch, None if it does not exist yet. Raise ToolError if it may not be moved."""
        ref = f"refs/heads/{names.check_branch(branch, self._settings.branch_prefix)}"
        if self._repository.refs("symbolic-ref", "--quiet", ref, expected=(0, 1, 128)).code == 0:
            raise toolbelt.ToolError(f"{branch} is a symbolic ref to another branch. Choose another branch.")
        worktrees = self._repository.refs("worktree", "list", "--porcelain", "-z").output.split(b"\0")
        if f"branch {ref}".encode() in worktrees:
            raise toolbelt.ToolError(f"{branch} is checked out in a work tree. Choose another branch.")
        return commits.find(self._repository, ref)

    def tree(self, parent: str, changes: Changes) -> str:
        """Return the tree that results from applying the changes to the parent's."""
        lines = []
        for path, change in changes.items():
            if change is None:
                lines.append(f"0 {'0' * len(parent)}\t{path}\0")
            else:
                mode, data = change
                blob = self._repository.text("hash-object", "-w", "-t", "blob", "--stdin", stdin_data=data)
                lines.append(f"{mode} {blob}\t{path}\0")
        with self._index(parent) as index:
            data = "".join(lines).encode()
            self._repository.objects("update-index", "-z", "--index-info", stdin_data=data, environment=index)
            return self._repository.text("write-tree", environment=index)

    @contextlib.contextmanager
    def _index(self, commit: str) -> Iterator[dict[str, str]]:
        """Yield the environment of an index with the commit's files, which is deleted afterwards."""
        with tempfile.TemporaryDirectory(prefix="toolbelt-index-") as directory:
            index = {"GIT_INDEX_FILE": os.path.join(directory, "index")}
            self._repository.objects("read-tree", commit, environment=index)
            yield index

    def _commit(
        self, tool: str, branch: str, message: str, head: str | None, make_tree: Callable[[str], str]
    ) -> dict[str, Any]:
        message = _check_message(message)
        subject = message.split("\n")[0]
        with self._lock:
            old = self.position(branch)
            parent = old or commits.resolve(self._repository, self._settings.base)
            if head and not parent.startswith(names.check_commit(head)):
                raise toolbelt.ToolError(f"{branch} is at {parent[:12]}, not at {head}. Read it again.")
            tree = make_tree(parent)
            paths = self._changed_paths(parent, tree)
            commit = self._make_commit(tree, parent, message)
            end = self._audit(
                "write",
                tool=tool,
                branch=branch,
                before=old or "",
                commit=commit,
                paths=paths,
                subject=subject,
            )
            options = ("--no-deref", "--create-reflog", "-m", f"{tool}: {subject}")
            move = (f"refs/heads/{branch}", commit, old or "0" * len(commit))
            try:
                moved = self._repository.refs("update-ref", *options, *move, expected=(0, 1, 128))
            except BaseException:
                end("unknown")
                raise
            if moved.code:
                end("refused")
                raise toolbelt.ToolError(
                    f"{branch} was moved in the meantime, or its name conflicts with another branch. "
                    "Nothing was changed. Read it again."
                )
            end("written")
        return {"branch": branch, "commit": commit, "before": parent, "paths": paths, "created": old is None}

    def _changed_paths(self, parent: str, tree: str) -> list[str]:
        """Return every path in which the tree differs. Raise ToolError if one of them may not be written."""
        options = ("-r", "-z", "--name-only", "--no-renames")
        changed = self._repository.objects("diff-tree", *options, parent, tree, "--")
        try:
            paths = changed.output.decode().strip("\0").split("\0")
        except UnicodeDecodeError:
            raise toolbelt.ToolError(
                "The change includes a file whose name is not text, which is refused."
            ) from None
        if paths == [""]:
            raise toolbelt.ToolError("Nothing to commit: the branch already contains these changes.")
        if changed.is_cut or len(paths) > MAX_PATHS:
            raise toolbelt.ToolError(
                f"The commit would change more than {MAX_PATHS} files. Make smaller commits."
            )
        names.check_writable(paths, self._settings.protected_paths)
        return paths

    def _make_commit(self, tree: str, parent: str, message: str) -> str:
        call = self._runtime.call
        agent = _one_line(call.agent) if call else "unknown"
        trailers = f"Toolbelt-Agent: {agent}"
        if call and call.session:
            trailers += f"\nToolbelt-Session: {_one_line(call.session)}"
        identity = {
            "GIT_AUTHOR_NAME": f"{agent} (agent)",
            "GIT_AUTHOR_EMAIL": "agent@toolbelt.invalid",
            "GIT_COMMITTER_NAME": "Toolbelt",
            "GIT_COMMITTER_EMAIL": "toolbelt@toolbelt.invalid",
        }
        text = f"{message}\n\n{trailers}\n".encode()
        return self._repository.text("commit-tree", tree, "-p", parent, stdin_data=text, environment=identity)

    def _audit(self, kind: Literal["write", "push"], **facts: Any) -> Callable[[str], None]:
        """Store an entry for the following write, and return a function that adds its outcome.

        The agent cannot access the entry. If an entry remains at ``begun``, the server stopped during the write.
        """
        call, at = self._runtime.call, dt.datetime.now(dt.UTC).isoformat()
        caller = {key: getattr(call, key, "") for key in ("agent", "session", "request_id")}
        entry = {"at": at, **caller, **facts}

        def store(outcome: str) -> None:
            key = f"{kind}/{at}/{facts['commit'][:12]}"
            toolbelt.wait(self._runtime.state.set(key, {**entry, "outcome": outcome}))

        def end(outcome: str) -> None:
            store(outcome)
            logged = {key: value for key, value in entry.items() if key != "paths"}
            self._runtime.log.info(f"self-evolution {kind}", outcome=outcome, **logged)

        store("begun")
        return end


def _check_message(message: str) -> str:
    """Return the commit message without surrounding white space. Raise ToolError if it is not text with a subject."""
    message = message.replace("\r\n", "\n").strip()
    if not message or any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in message):
        raise toolbelt.ToolError(
            "Write a commit message with a subject line, as text without control characters."
        )
    return message


def _one_line(text: str) -> str:
    """Return the text on one line, without characters that would end a name in a commit."""
    visible = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in text)
    return " ".join(visible.replace("<", " ").replace(">", " ").split())[:200]
