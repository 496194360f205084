"""How does a branch get to the remote? By address, and only over what carries data and runs nothing here."""

from __future__ import annotations

import re

import toolbelt
from toolbelt.plugins.builtin.self_evolution import git, settings

# git knows addresses that run a program (ext::), and ssh takes options for hosts: neither begins like one of these.
_ADDRESS = re.compile(
    r"(?:https://[A-Za-z0-9]|ssh://[A-Za-z0-9]|file:///|/|[A-Za-z0-9_.][A-Za-z0-9_.-]*@[A-Za-z0-9])\S*"
)


def run(repository: git.Git, configured: settings.Settings, branch: str, commit: str) -> None:
    """Push the commit to the branch of the same name; never by force, so what others pushed there stays."""
    found = repository.refs("config", "--get", f"remote.{configured.remote}.url", expected=(0, 1))
    address = found.output.decode(errors="replace").strip()
    if not address:
        raise toolbelt.ToolError(f"The repository has no remote {configured.remote!r} to push to.")
    if not _ADDRESS.fullmatch(address) or "::" in address:
        raise toolbelt.ToolError(
            f"The remote {configured.remote!r} has an address that is not pushed to from here."
        )
    pushed = repository.push(address, commit, branch)
    if pushed.late:
        raise toolbelt.ToolError("The remote did not answer in time. The commit is on the branch here.")
    if pushed.code:
        behind = b"non-fast-forward" in pushed.errors or b"fetch first" in pushed.errors
        why = "it has commits that are not here" if behind else "the server's log may say why"
        raise toolbelt.ToolError(f"The remote refused the push: {why}. The commit is on the branch here.")
    repository.refs(
        *("update-ref", "--no-deref", f"refs/remotes/{configured.remote}/{branch}", commit),
        expected=(0, 1, 128),
    )
