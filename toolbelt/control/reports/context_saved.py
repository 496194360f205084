"""The context that agents save: what they were sent, and what all allowed tools would have cost, in tokens."""

from __future__ import annotations

from toolbelt.store import context_use

Use = context_use.Use
Total = context_use.Total

total = context_use.total
by_day = context_use.by_day
add_all = context_use.add_all
