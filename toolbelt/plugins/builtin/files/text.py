"""What do these bytes say, which of their lines are wanted, and what do they say with a text replaced?"""

from __future__ import annotations

from dataclasses import dataclass

import toolbelt

LONGEST_ANSWER = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A range of lines, from ``first`` to ``last`` of ``count``; ``cut`` where even these were too long."""

    text: str
    first: int
    last: int
    count: int
    cut: bool


def decode(data: bytes, path: str) -> str:
    """Read UTF-8, and refuse what is no text in words."""
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    raise toolbelt.ToolError(
        f"{path} is not text in UTF-8: its {len(data)} bytes are not shown or changed here."
    )


def encode(text: str) -> bytes:
    """Write UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise toolbelt.ToolError("The text holds half a character, which UTF-8 cannot write.") from None


def lines(text: str, first: int, most: int) -> Lines:
    """Give at most ``most`` lines from ``first`` on, whole ones, as many as an answer holds.

    Only a line feed ends a line, as in every editor's count; a carriage return stays where it is.
    """
    found = text.split("\n")
    if found[-1] == "":
        found.pop()
    if first > max(len(found), 1):
        raise toolbelt.ToolError(f"There is no line {first}: the file has {len(found)}.")
    taken: list[str] = []
    room = LONGEST_ANSWER
    for line in found[first - 1 : first - 1 + most]:
        if len(line) + 1 > room:
            break
        taken.append(line)
        room -= len(line) + 1
    if not taken and found:
        # One line that is longer than an answer: its beginning says more than nothing.
        taken = [found[first - 1][:LONGEST_ANSWER]]
        return Lines(text=taken[0], first=first, last=first, count=len(found), cut=True)
    last = first + len(taken) - 1
    ending = "\n" if taken and (last < len(found) or text.endswith("\n")) else ""
    return Lines(text="\n".join(taken) + ending, first=first, last=last, count=len(found), cut=False)


def replaced(text: str, old: str, new: str, count: int, path: str) -> str:
    """Replace ``old`` by ``new``, which must stand there exactly ``count`` times."""
    if old == new:
        raise toolbelt.ToolError("Old and new are the same text: nothing would change.")
    found = text.count(old)
    if found == count:
        return text.replace(old, new)
    if found == 0:
        hint = " Its lines end in CR LF." if "\r\n" in text and "\r" not in old else ""
        raise toolbelt.ToolError(
            f"{path} does not hold the old text, to the character. Read it again, and copy from there.{hint}"
        )
    raise toolbelt.ToolError(
        f"{path} holds the old text {found} times, not {count}: give more of what is around it, or count={found}."
    )
