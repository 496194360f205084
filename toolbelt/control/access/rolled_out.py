"""Writing again what is rolled out (docs/how-to/try-a-change.md): also who turns off what is off already denies it.

A write that changes a value ends what is rolled out over it by itself (:mod:`toolbelt.core.rollouts`). One that says
what the agent has already changes no value, so the roll-out is ended here.
"""

from __future__ import annotations

from collections.abc import Collection

from toolbelt.control import writing
from toolbelt.core import agents, rollouts
from toolbelt.store import snapshots, trials


def keys(agent: agents.Agent) -> frozenset[str]:
    """Return the switches and overrides of an agent that its roll-out changes."""
    return frozenset() if agent.rollout is None else rollouts.keys(agent.rollout)


def end(
    write: writing.Write, agent: agents.Agent, *, keys: Collection[str] = (), fields: Collection[str] = ()
) -> None:
    """End the roll-out of an agent, in the transaction of the caller, if it changes one of these switches and overrides
    (``keys``) or ``fields``, which the write left as they are. Nothing is ended in a dry run.
    """
    rollout = agent.rollout
    if rollout is None or snapshots.is_trying():
        return
    again = rollouts.named(rollout, keys, fields)
    trial = trials.find(rollout.trial) if again else None
    if trial is None or not trial.is_running:
        return
    note = f"{write.actor.name} set {', '.join(again)} of {agent.key} to what it is without it."
    trials.end(trial.pk, "reverted", note)
    before = {"title": trial.title, "mode": trial.mode}
    record = write.replace(reason=write.reason or note)
    writing.record(record, "draft", str(trial.draft), action="draft.stop", before=before, after=None)
