"""What tests of trials and roll-outs share: times, people, sessions of an arm, rounds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.contrib import auth

from toolbelt.control import drafts, trial_rounds, trials, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.people import roles
from toolbelt.core import agents, rollouts
from toolbelt.runtime import surfaces
from toolbelt.store import clock

WRITE = writing.by("olive", via="screen")
CONFIRMED = WRITE.replace(confirm=True)
NOW = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


def flip(agent: str = "bob", key: str = "reading", on: bool | None = False) -> Callable[[writing.Write], Any]:
    return lambda write: switches.flip(write, agent, key, on)


def saved(*acts: Callable[[writing.Write], Any]) -> drafts.Draft:
    def act(write: writing.Write) -> None:
        for each in acts:
            each(write)

    with clock.stopped(NOW):
        return drafts.save(WRITE, act)


def rolled_out(draft: drafts.Draft, **options: Any) -> trials.Trial:
    with clock.stopped(NOW):
        return trials.roll_out(CONFIRMED, draft.key, **{"percent": 50, **options})


def of(draft: drafts.Draft) -> trials.Trial:
    trial = trials.latest(draft.key)
    assert trial is not None
    return trial


def in_arm(trial: trials.Trial, is_new: bool, agent: str = "bob") -> str:
    """Return a session of the new arm, or of the old one."""
    rollout = agents.Rollout(trial=trial.pk, percent=trial.percent, changes="[]")
    names = (f"s{number}" for number in range(1000))
    return next(name for name in names if rollouts.includes(rollout, agent, name) is is_new)


def active(session: str | None = None, agent: str = "bob") -> set[str]:
    return set(surfaces.ask(agent, session).resolution.active)


def round_at(moment: dt.datetime) -> int:
    with clock.stopped(moment):
        return trial_rounds.run()


def demoted(olive: Any) -> None:
    roles.remove(WRITE, "olive", "operator")


def deactivated(olive: Any) -> None:
    olive.is_active = False
    olive.save()


def replaced(olive: Any) -> None:
    olive.delete()
    auth.get_user_model().objects.create_user("olive")
    roles.assign(WRITE, "olive", "operator")


def put_loadout(write: writing.Write) -> None:
    entries.put(write, "loadout", {"name": "house", "plugins": ["git"]})
