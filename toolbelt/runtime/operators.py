"""What operators' side does for agents' side: `toolbelt.runtime` does not import `toolbelt.control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core.imported import importing


@dataclass(slots=True, kw_only=True)
class Operators:
    """Functions of `toolbelt.control`. Without one, nothing is recorded.

    ``record_list`` is called with a server's name and its list when it connects or announces a change,
    ``request_review`` with the name of a server that would ask users and has no entry for that, and ``record_failure``
    with the name and the error of a plugin that has failed. ``declare`` stores an agent's declaration for a plugin.
    """

    record_list: Callable[[str, importing.ServerListing], object] | None = None
    request_review: Callable[[str], object] | None = None
    record_failure: Callable[[str, str], object] | None = None
    declare: Callable[[str, str, Sequence[Mapping[str, Any]]], Mapping[str, Any]] | None = None


# Those of this process, which `toolbelt.processes` sets.
OPERATORS = Operators()
