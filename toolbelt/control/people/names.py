"""Names of people, compared as people read them: the audit log tells people by their names.

Two names are alike if they differ in case, in compatible forms of Unicode, or by letters of Cyrillic and Greek that
look like Latin ones.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from django.contrib import auth

from toolbelt.core import errors
from toolbelt.store import entries

# What Toolbelt itself is called in the audit log.
_OWN = ("system", "toolbelt")
_LOOK_ALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝӀӏҮүѴѵԌԍΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυϳıɑɡ",
    "ABESIJKMHOPCTYXaesijopcyxhdqwllYyVvGgABEZHIKMNOPTYXaikvopujiag",
)


def forms(name: str) -> frozenset[str]:
    """Return the forms of a name: two names are alike if they have one in common."""
    common = unicodedata.normalize("NFKC", name)
    # Some letters are like Latin ones only as capitals, and some only as small letters.
    latin = common.translate(_LOOK_ALIKE).casefold().translate(_LOOK_ALIKE)
    return frozenset({common.casefold(), latin})


def normal(name: str) -> str:
    """Return a name as it is stored: in the common forms of its characters."""
    return str(auth.get_user_model().normalize_username(name))


def check_is_new(name: str) -> None:
    """Raise errors.Invalid if the name is like that of a user or a server, or like Toolbelt's own."""
    model: Any = auth.get_user_model()
    taken = model._default_manager.values_list(model.USERNAME_FIELD, flat=True)
    new = forms(name)
    if any(new & forms(other) for other in taken):
        message = "A user has this name, or one that looks like it."
    elif any(new & forms(other) for other in (*_OWN, *entries.names("plugin"))):
        message = "Toolbelt or a server has this name, or one that looks like it."
    else:
        return
    raise errors.Invalid([errors.Problem(path="name", message=message)])
