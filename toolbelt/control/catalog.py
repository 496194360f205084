"""What does an operator do with the catalog as a whole?"""

from __future__ import annotations

from toolbelt.control import writing
from toolbelt.store import tokens


def recount_tokens() -> int:
    """Count every tool's tokens anew; how many counts were not right.

    Tools that are written through a door or a fixture are counted on the way; raw SQL and bulk writes are not. It
    corrects a figure that is derived, and changes nothing that anybody configured: so there is no audit entry.
    """
    with writing.begin():
        return tokens.recount()
