"""What happens when a model calls one of the eight tools?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import (
    checking,
    comparing,
    declared,
    edits,
    git,
    names,
    pushing,
    reading,
    searching,
    settings,
    toolkit,
    trail,
    writing,
)

LONGEST_ANSWER = 100_000


class SelfEvolution(toolbelt.ToolPlugin):
    name = "self_evolution"
    namespace = "evolve"
    title = "Self evolution"
    description = (
        "A git repository that agents read, and change on branches of their own. Needs config.repository."
    )
    category = "git"
    tools = declared.TOOLS
    toolkits = (toolkit.SelfEvolutionToolkit(),)

    def __init__(self) -> None:
        self._acts: _Acts | None = None

    def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        configured = settings.read(runtime.config)
        self._acts = _Acts(git.opened(configured.repository), configured, runtime)

    def shutdown(self) -> None:
        if self._acts is not None:
            self._acts.repository.close()
            self._acts = None

    def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        if tool_name not in toolkit.MEMBERS:
            raise ValueError(f"self_evolution has no tool {tool_name!r}.")
        if self._acts is None:
            raise RuntimeError("self_evolution is not initialized.")
        return self._acts.by_tool[tool_name](**args)


class _Acts:
    """The eight acts on one repository; each takes its tool's arguments."""

    def __init__(
        self, repository: git.Git, configured: settings.Settings, runtime: toolbelt.RuntimeAPI
    ) -> None:
        self.repository = repository
        self._settings = configured
        self._runtime = runtime
        self._writer = writing.Writer(repository, configured, runtime)
        self.by_tool: Mapping[str, Callable[..., dict[str, Any]]] = {
            toolkit.READ_FILE: self._read_file,
            toolkit.LIST_FILES: self._list_files,
            toolkit.SEARCH_CODE: self._search_code,
            toolkit.PATCH_FILES: self._patch_files,
            toolkit.COMMIT_PUSH: self._commit_push,
            toolkit.COMPARE_COMMITS: self._compare_commits,
            toolkit.REVERT_COMMIT: self._revert_commit,
            toolkit.CHECK_DEPLOY: self._check_deploy,
        }

    def _read_file(
        self, path: str, ref: str = "HEAD", first_line: int = 1, lines: int = declared.MOST_LINES
    ) -> dict[str, Any]:
        at = reading.commit(self.repository, ref)
        entry, text = reading.file(self.repository, at, names.file_path(path))
        # Only a line feed ends a line; its last one does not begin another.
        found = text.removesuffix("\n").split("\n") if text else []
        if first_line > max(len(found), 1):
            raise toolbelt.ToolError(f"There is no line {first_line}: {entry.path} has {len(found)}.")
        wanted = found[first_line - 1 : first_line - 1 + lines]
        last = first_line - 1 + len(wanted)
        content = "\n".join(wanted) + ("\n" if wanted and (last < len(found) or text.endswith("\n")) else "")
        answer: dict[str, Any] = {
            "path": entry.path,
            "commit": at,
            "content": content[:LONGEST_ANSWER],
            "first_line": first_line,
            "last_line": last,
            "line_count": len(found),
        }
        if len(content) > LONGEST_ANSWER:
            answer["note"] = (
                f"Only {LONGEST_ANSWER} of {len(content)} characters are shown: ask for fewer lines."
            )
        return answer

    def _list_files(self, path: str = "", ref: str = "HEAD", recursive: bool = False) -> dict[str, Any]:
        at, below = reading.commit(self.repository, ref), names.path(path)
        found = reading.entries(self.repository, at, below, recursive=recursive)
        if below and not found:
            raise toolbelt.ToolError(f"There is no directory {below} in {at[:12]}.")
        entries = [
            {"path": one.path, "kind": one.kind, **({"bytes": one.size} if one.kind == "file" else {})}
            for one in found[: declared.MOST_ENTRIES]
        ]
        return {"commit": at, "entries": entries, "complete": len(found) <= declared.MOST_ENTRIES}

    def _search_code(
        self, query: str, regex: bool = False, path: str = "", ref: str = "HEAD", limit: int = 50
    ) -> dict[str, Any]:
        pattern = searching.compiled(query, regex=regex)
        at = reading.commit(self.repository, ref)
        return searching.run(self.repository, at, names.path(path), pattern, limit)

    def _patch_files(
        self, branch: str, message: str, patches: Sequence[Mapping[str, Any]], head: str = ""
    ) -> dict[str, Any]:
        protected = self._settings.protected_paths
        return self._writer.write(
            toolkit.PATCH_FILES,
            branch,
            message,
            head,
            lambda parent: edits.patched(self.repository, parent, patches, protected),
        )

    def _commit_push(
        self, branch: str, message: str = "", files: Sequence[Mapping[str, Any]] = (), head: str = ""
    ) -> dict[str, Any]:
        answer: dict[str, Any]
        if files:
            protected = self._settings.protected_paths
            answer = self._writer.write(
                toolkit.COMMIT_PUSH,
                branch,
                message,
                head,
                lambda parent: edits.replaced(self.repository, parent, files, protected),
            )
        else:
            if not self._settings.push:
                raise toolbelt.ToolError(
                    "The operator does not allow pushing, and there are no files to commit."
                )
            stands = self._writer.stands_at(branch)
            if stands is None:
                raise toolbelt.ToolError(f"There is no branch {branch} to push.")
            answer = {"branch": branch, "commit": stands}
        if not self._settings.push:
            return {**answer, "pushed": False, "note": "Not pushed: the operator does not allow that."}
        entry = trail.Entry(
            runtime=self._runtime,
            tool=toolkit.COMMIT_PUSH,
            kind="push",
            branch=branch,
            before="",
            commit=answer["commit"],
        )
        entry.begin()
        try:
            pushing.run(self.repository, self._settings, branch, answer["commit"])
        except toolbelt.ToolError as error:
            entry.end("refused")
            return {**answer, "pushed": False, "note": str(error)}
        entry.end("written")
        return {**answer, "pushed": True}

    def _compare_commits(self, base: str, head: str, paths: Sequence[str] = ()) -> dict[str, Any]:
        older, newer = (reading.commit(self.repository, side) for side in (base, head))
        # The root narrows nothing, and git takes no empty path.
        wanted = [found for found in map(names.path, paths) if found]
        return comparing.run(self.repository, older, newer, wanted)

    def _revert_commit(self, commit: str, branch: str, reason: str) -> dict[str, Any]:
        undone = reading.commit(self.repository, names.commit(commit))
        return self._writer.revert(toolkit.REVERT_COMMIT, branch, undone, reason)

    def _check_deploy(self, ref: str = "HEAD", run: bool = True) -> dict[str, Any]:
        return checking.run(self.repository, self._settings, ref, check=run)
