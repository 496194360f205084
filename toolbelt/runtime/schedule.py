"""Delivery of the built-in scheduler's due notes: one round of its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from django.utils import timezone

from toolbelt.plugins.builtin.scheduler import worker
from toolbelt.runtime import plugin_state
from toolbelt.store import locks

NAMESPACE = "scheduler"
Run = worker.Run
Round = worker.Round


def run_due(deliver: Callable[[worker.Run], Awaitable[None]]) -> worker.Round | None:
    """Deliver the due notes; None if another worker is delivering. If ``deliver`` raises, the run stays due."""
    with locks.try_lock(NAMESPACE) as is_ours:
        if not is_ours:
            return None
        return asyncio.run(worker.run_due(plugin_state.State(NAMESPACE), timezone.now(), deliver))
