"""Fields of a client's file by what they mean, however the client spells them, and the keys that nothing used.

Clients write the same thing as ``httpUrl``, ``http_url`` or ``server-url``: a key is compared without case and signs. A
key that was not used is named to the operator, and its value never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import secret_texts, texts
from toolbelt.core.imported import cleaning

MAX_KEY_LENGTH = 80


def form(key: str) -> str:
    """Return the form in which a key is compared: the last part of ``amp.mcpServers``, without case and signs."""
    return re.sub(r"[^a-z0-9]", "", key.rpartition(".")[2].lower())


class Fields:
    """The fields of one object in a file, and which of them were used."""

    def __init__(self, document: Mapping[str, Any], path: str = "") -> None:
        self.document, self._path = document, path
        self._keys: dict[str, str] = {}
        for key in document:
            self._keys.setdefault(form(key), key)
        self._used: set[str] = set()
        self._inner: dict[str, Fields] = {}

    def take(self, *spellings: str) -> Any:
        """Return the value of the first of these keys that is given, and count it as used; None if none is.

        An empty value is as good as none.
        """
        for spelling in spellings:
            key = self._keys.get(form(spelling))
            if key is not None and key not in self._used:
                self._used.add(key)
                if self.document[key] not in (None, "", [], {}):
                    return self.document[key]
        for part in self._inner.values():
            if part._is_embedded and (value := part.take(*spellings)) is not None:
                return value
        return None

    def has(self, spelling: str) -> bool:
        """Return whether this key is given here, used or not."""
        return form(spelling) in self._keys

    def given(self, spelling: str) -> Any:
        """Return the value of this key, also an empty one, without counting it as used; None if it is not given."""
        key = self._keys.get(form(spelling))
        if key is not None and key not in self._used:
            return self.document[key]
        values = (part.given(spelling) for part in self._inner.values() if part._is_embedded)
        return next((value for value in values if value is not None), None)

    def take_all(self, *spellings: str) -> Iterator[tuple[str, Any]]:
        """Yield each of these keys that is given, as it is spelled here, with its value."""
        for spelling in spellings:
            if (value := self.take(spelling)) is not None:
                yield spelling, value

    def embed(self, *spellings: str) -> None:
        """Read the fields of the object under each of these keys as if they were here."""
        for spelling in spellings:
            key = self._keys.get(form(spelling))
            if key is not None and isinstance(self.document[key], Mapping):
                self.inside(key)._is_embedded = True

    def inside(self, key: str) -> Fields:
        """Return the fields of the object under this key, as it is spelled here; what is not used there counts."""
        if key not in self._inner:
            self._used.add(key)
            self._inner[key] = Fields(self.document[key], f"{self._path}{key}.")
        return self._inner[key]

    def inside_of(self, spelling: str) -> Fields | None:
        """Return the fields of the object under this key, if it is given here or in an embedded object."""
        key = self._keys.get(form(spelling))
        if key is not None and isinstance(self.document[key], Mapping):
            return self.inside(key)
        parts = (part.inside_of(spelling) for part in self._inner.values() if part._is_embedded)
        return next((part for part in parts if part is not None), None)

    def use(self, key: str) -> None:
        """Count this key, as it is spelled here, as used."""
        self._used.add(key)

    def unused(self) -> list[str]:
        """Return the keys that were not used, each with its place, such as ``mcp.inputs``."""
        own = [shown_key(self._path + key) for key in self.document if key not in self._used]
        return own + [key for part in self._inner.values() for key in part.unused()]

    _is_embedded = False


def shown_key(key: str) -> str:
    """Return a key of a file as it is shown: without hidden characters and secrets, and not too long."""
    return texts.cut(cleaning.escape_hidden(secret_texts.masked(key)), MAX_KEY_LENGTH)


_OFF, _ON = ("disabled", "is_disabled"), ("enabled", "is_enabled", "active", "is_active", "status")


def switch(fields: Fields) -> bool | None:
    """Return whether these fields have something on, in whichever spelling; None if they do not say. Off wins."""
    off = [is_on(value) for _, value in fields.take_all(*_OFF)]
    states = [
        *(is_on(value) for _, value in fields.take_all(*_ON)),
        *(None if on is None else not on for on in off),
    ]
    known = [state for state in states if state is not None]
    return all(known) if known else None


def is_on(value: Any) -> bool | None:
    """Return whether a switch is on, also as text or as a number; None if it is no switch."""
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "on": True, "1": True, "enabled": True, "active": True}
    words |= dict.fromkeys(("false", "no", "off", "0", "disabled", "inactive"), False)
    return words.get(str(value).strip().lower())


def text(value: Any) -> str:
    """Return a value as the text that a client would pass on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def items(value: Any) -> list[Any]:
    """Return a list; empty if the value is none."""
    return value if isinstance(value, list) else []
