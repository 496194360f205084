"""The self_evolution plugin: its eight tools."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from toolbelt import FunctionPlugin, RuntimeAPI, ToolError, tool
from toolbelt.plugins import config, plain_text
from toolbelt.plugins.builtin.self_evolution import checking, commits, git, names, settings, toolkit, writing

MAX_ENTRIES = 1_000
DESCRIPTION = (
    "Lets agents read a git repository, and change it on their own branches. Requires config.repository."
)

_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
# Pushes leave this machine, and a check runs the repository's code.
_REACHES_OUT = {**_WRITES, "openWorldHint": True}


def _text(max_length: int, description: str, min_length: int = 1) -> Any:
    return Field(min_length=min_length, max_length=max_length, description=description)


Path = Annotated[str, _text(names.MAX_PATH_LENGTH, "Path from the repository's root.")]
Directory = Annotated[
    str, _text(names.MAX_PATH_LENGTH, "Path from the repository's root. Empty for the root.", min_length=0)
]
Ref = Annotated[str, _text(200, "Branch, tag or commit, such as main or main~1.")]
Branch = Annotated[
    str,
    _text(
        200,
        "A branch of your own, such as evolve/fix-login. A new branch starts at the base branch.",
    ),
]
Message = Annotated[
    str, _text(2_000, "Commit message: a subject line, an empty line, the reasons.", min_length=10)
]
Head = Annotated[
    str,
    _text(
        64,
        "The commit that your change is based on. If the branch has moved since, nothing is changed.",
        min_length=7,
    ),
]
Content = Annotated[str, Field(max_length=commits.MAX_FILE_BYTES)]
Count = Annotated[int, Field(ge=1, le=1_000)]


class Patch(BaseModel, extra="forbid"):
    path: Path
    old: Annotated[Content, Field(min_length=1, description="The exact text to replace.")]
    new: Annotated[Content, Field(description="The new text.")]
    count: Annotated[
        Count, Field(description="The number of occurrences of the old text. All of them are replaced.")
    ] = 1


class File(BaseModel, extra="forbid"):
    path: Path
    content: Annotated[Content, Field(description="The complete new text.")] | SkipJsonSchema[None] = None
    delete: Annotated[bool, Field(description="Delete the file instead.")] = False


class SelfEvolution(FunctionPlugin):
    """A git repository for agents. Config: the fields of ``settings.Settings``."""

    def __init__(self) -> None:
        super().__init__(
            name="self_evolution",
            namespace="evolve",
            title="Self evolution",
            description=DESCRIPTION,
            category="git",
            functions=[getattr(self, key.removeprefix("evolve__")) for key in toolkit.MEMBERS],
            toolkits=[toolkit.SelfEvolutionToolkit()],
        )

    def initialize(self, runtime: RuntimeAPI) -> None:
        super().initialize(runtime)
        self._settings = config.read(settings.Settings, "self_evolution", runtime.config)
        self._repository = git.open_repository(self._settings.repository)
        self._writer = writing.Writer(self._repository, self._settings, runtime)

    def shutdown(self) -> None:
        self._repository.close()

    @tool(title="Read a file", annotations=_READS)
    def read_file(
        self,
        path: Path,
        ref: Ref = "HEAD",
        first_line: Annotated[int, Field(ge=1, le=10_000_000)] = 1,
        lines: Annotated[int, Field(ge=1, le=2_000)] = 2_000,
    ) -> dict[str, Any]:
        """Read a text file of the repository at a branch, tag or commit, completely or a range of its lines.

        Args:
            first_line: The first line to return.
            lines: The maximum number of lines.
        """
        commit = commits.resolve(self._repository, ref)
        entry, text = commits.read_text(self._repository, commit, names.normalize_file(path))
        excerpt = plain_text.lines(text, first_line, lines)
        answer: dict[str, Any] = {
            "path": entry.path,
            "commit": commit,
            "content": excerpt.text,
            "first_line": excerpt.first,
            "last_line": excerpt.last,
            "line_count": excerpt.count,
        }
        if excerpt.is_truncated or excerpt.last < min(first_line - 1 + lines, excerpt.count):
            answer["note"] = (
                f"The result is cut off after {plain_text.MAX_ANSWER_LENGTH} characters. Read fewer lines."
            )
        return answer

    @tool(title="List files", annotations=_READS)
    def list_files(self, path: Directory = "", ref: Ref = "HEAD", recursive: bool = False) -> dict[str, Any]:
        """List a directory of the repository at a branch, tag or commit, with sizes.

        Args:
            recursive: Whether to list all files below the directory, at most 1000.
        """
        commit, below = commits.resolve(self._repository, ref), names.normalize(path)
        listed = commits.entries(self._repository, commit, below, recursive=recursive)
        if below and not listed:
            raise ToolError(f"There is no directory {below} in {commit[:12]}.")
        entries = [
            {
                "path": entry.path,
                "kind": entry.kind,
                **({"bytes": entry.size} if entry.kind == "file" else {}),
            }
            for entry in listed[:MAX_ENTRIES]
        ]
        return {"commit": commit, "entries": entries, "complete": len(listed) <= MAX_ENTRIES}

    @tool(title="Search the code", annotations=_READS)
    def search_code(
        self,
        query: Annotated[str, Field(min_length=1, max_length=1_000)],
        regex: bool = False,
        path: Directory = "",
        ref: Ref = "HEAD",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> dict[str, Any]:
        """Find the lines that contain a text, in the files of a branch, tag or commit.

        Args:
            query: The text to find, or an RE2 expression if regex is true. Each line is searched separately.
            regex: Whether the query is a regular expression.
            limit: The maximum number of matching lines.
        """
        pattern = plain_text.search_pattern(query, regex=regex)
        commit = commits.resolve(self._repository, ref)
        return commits.search(self._repository, commit, names.normalize(path), pattern, limit)

    @tool(title="Patch files", annotations=_WRITES)
    def patch_files(
        self,
        branch: Branch,
        message: Message,
        patches: Annotated[list[Patch], Field(min_length=1, max_length=100)],
        head: Head | SkipJsonSchema[None] = None,
    ) -> dict[str, Any]:
        """Commit exact replacements to a branch of your own, in one or more files. Each old text must occur in its file
        exactly as often as count says: once by default. Otherwise nothing is changed. Does not push.

        Args:
            patches: The replacements, in order.
        """

        def change(parent: str) -> writing.Changes:
            modes: dict[str, str] = {}
            texts: dict[str, str] = {}
            for patch in patches:
                path = self._writable(patch.path)
                if path not in texts:
                    entry, texts[path] = commits.read_text(self._repository, parent, path)
                    modes[path] = entry.mode
                texts[path] = plain_text.replace(texts[path], patch.old, patch.new, patch.count, path)
            return {path: (modes[path], _encode(text, path)) for path, text in texts.items()}

        return self._writer.commit(toolkit.PATCH_FILES, branch, message, head, change)

    @tool(title="Commit and push", annotations=_REACHES_OUT)
    def commit_push(
        self,
        branch: Branch,
        message: Message | SkipJsonSchema[None] = None,
        head: Head | SkipJsonSchema[None] = None,
        files: Annotated[Sequence[File], Field(max_length=50)] = (),
    ) -> dict[str, Any]:
        """Commit whole files to a branch of your own in one commit, and push the branch if the operator allows it.
        Without files, only push.

        Args:
            files: The files with their complete new content.
        """
        answer: dict[str, Any]
        if files:
            answer = self._writer.commit(
                toolkit.COMMIT_PUSH, branch, message or "", head, lambda parent: self._replace(parent, files)
            )
        elif not self._settings.push:
            raise ToolError("The operator does not allow pushing, and there are no files to commit.")
        else:
            commit = self._writer.position(branch)
            if commit is None:
                raise ToolError(f"There is no branch {branch} to push.")
            answer = {"branch": branch, "commit": commit}
        if not self._settings.push:
            return {**answer, "pushed": False, "note": "Not pushed: the operator does not allow that."}
        try:
            self._writer.push(toolkit.COMMIT_PUSH, branch, answer["commit"])
        except ToolError as error:
            return {**answer, "pushed": False, "note": str(error)}
        return {**answer, "pushed": True}

    @tool(title="Compare commits", annotations=_READS)
    def compare_commits(
        self,
        base: Annotated[str, Field(min_length=1, max_length=200)],
        head: Annotated[str, Field(min_length=1, max_length=200)],
        paths: Annotated[Sequence[Path], Field(max_length=50)] = (),
    ) -> dict[str, Any]:
        """Compare two branches, tags or commits: the commits that are in head but not in base, and their diff.

        Args:
            base: The older side.
            head: The newer side.
            paths: Only compare files at or below these paths.
        """
        older, newer = (commits.resolve(self._repository, side) for side in (base, head))
        # Git accepts no empty path, and the root would not narrow the comparison.
        return commits.compare(
            self._repository, older, newer, list(filter(None, map(names.normalize, paths)))
        )

    @tool(title="Revert a commit", annotations=_WRITES)
    def revert_commit(
        self,
        commit: Annotated[str, Field(min_length=7, max_length=64)],
        branch: Branch,
        reason: Annotated[str, Field(min_length=10, max_length=2_000)],
    ) -> dict[str, Any]:
        """Undo a commit of a branch of your own by a new commit on that branch. Changes nothing if later commits
        changed the same lines. Does not push.

        Args:
            commit: The hash of the commit to undo.
            reason: The reason, for the commit message.
        """
        undone = commits.resolve(self._repository, names.check_commit(commit))
        return self._writer.revert(toolkit.REVERT_COMMIT, branch, undone, reason)

    @tool(title="Check a commit", annotations=_REACHES_OUT)
    def check_deploy(self, ref: Ref = "HEAD", run: bool = True) -> dict[str, Any]:
        """Check the state of a branch or commit: how far it is from the base branch, whether it was pushed, and whether
        the operator's check passes.

        Args:
            run: Whether to run the operator's check, which can take minutes.
        """
        return checking.report(self._repository, self._settings, ref, run=run)

    def _replace(self, parent: str, files: Sequence[File]) -> writing.Changes:
        changes: dict[str, tuple[str, bytes] | None] = {}
        for file in files:
            path = self._writable(file.path)
            if path in changes:
                raise ToolError(f"{path} is listed twice. List each file once.")
            if file.delete == (file.content is not None):
                raise ToolError(f"Send either content or delete: true for {path}.")
            entry = commits.entry(self._repository, parent, path)
            if entry is not None and entry.kind != "file":
                raise ToolError(f"{path} is a {entry.kind}, not a file.")
            if entry is None and file.delete:
                raise ToolError(f"{path} does not exist, so it cannot be deleted.")
            for directory in list(pathlib.PurePosixPath(path).parents)[:-1]:
                above = commits.entry(self._repository, parent, str(directory))
                if above is not None and above.kind != "directory":
                    raise ToolError(f"{above.path} is a {above.kind}: nothing can be below it.")
            mode = entry.mode if entry else "100644"
            changes[path] = None if file.content is None else (mode, _encode(file.content, path))
        return changes

    def _writable(self, path: str) -> str:
        path = names.normalize_file(path)
        names.check_writable([path], self._settings.protected_paths)
        return path


def _encode(text: str, path: str) -> bytes:
    data = text.encode()
    if len(data) > commits.MAX_FILE_BYTES:
        raise ToolError(f"{path} would have {len(data)} bytes; at most {commits.MAX_FILE_BYTES} are allowed.")
    return data
