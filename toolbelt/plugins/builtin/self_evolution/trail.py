"""Who changed what, when and on whose behalf? One entry for each write, kept where the agent cannot reach.

The entry is there before the branch moves: where it cannot be kept, nothing is written. Afterwards it says how it went,
so one that still says ``begun`` tells of a server that stopped in between.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import toolbelt


@dataclass(slots=True, kw_only=True)
class Entry:
    """One write, of a commit here or of a branch to the remote. ``before`` is empty for a branch that is new."""

    runtime: toolbelt.RuntimeAPI
    tool: str
    branch: str
    before: str
    commit: str
    paths: Sequence[str] = ()
    subject: str = ""
    kind: Literal["write", "push"] = "write"
    at: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).isoformat())

    def begin(self) -> None:
        """Keep what is about to be done."""
        self._keep("begun")

    def end(self, outcome: str) -> None:
        """Keep how it went, and tell the log."""
        self._keep(outcome)
        self.runtime.log.info(
            f"self-evolution {self.kind}",
            outcome=outcome,
            **{key: value for key, value in self._facts().items() if key != "paths"},
        )

    def _keep(self, outcome: str) -> None:
        key = f"{self.kind}/{self.at}/{self.commit[:12]}"
        toolbelt.wait(self.runtime.state.set(key, {**self._facts(), "outcome": outcome}))

    def _facts(self) -> dict[str, Any]:
        call = self.runtime.call
        return {
            "at": self.at,
            "agent": call.agent if call else "",
            "session": call.session if call else "",
            "request_id": call.request_id if call else "",
            "tool": self.tool,
            "branch": self.branch,
            "before": self.before,
            "commit": self.commit,
            "paths": list(self.paths),
            "subject": self.subject,
        }
