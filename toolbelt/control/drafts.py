"""Drafts: changes that are kept instead of made, and made as they were seen (docs/how-to/try-a-change.md).

A draft is what the audit log would record of a change. The change is made by the function that makes it, in a
transaction that is rolled back, and its entries are kept. To apply it, each of them is made again: in one transaction,
if everything that it changes is still as it was, and only if exactly the same is then logged. The draft's key is the
batch of these entries, so that they are one change.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from toolbelt.control import draft_changes, proofs, writing
from toolbelt.control.access import expirations
from toolbelt.control.people import rights
from toolbelt.core import errors, texts
from toolbelt.store import audit, clock, trials
from toolbelt.store import drafts as rows

Draft = rows.Draft
listed, count, count_open = rows.listed, rows.count, rows.count_open
NotAsSeen, verb = draft_changes.NotAsSeen, draft_changes.verb
# How long a draft is kept, and at most.
KEPT, MAX_KEPT = dt.timedelta(days=30), dt.timedelta(days=365)
MAX_TITLE = 200


def save(
    write: writing.Write,
    act: Callable[[writing.Write], object],
    *,
    title: str = "",
    ends: dt.datetime | None = None,
) -> Draft:
    """Keep the change that ``act`` makes as a draft, and make nothing of it; raise as ``act`` does.

    ``act`` is passed the write, confirmed: what has to be confirmed is when the draft is applied. Without a ``title``,
    it says what changes; ``ends`` is when the draft is discarded, :data:`KEPT` from now by default.

    Raise errors.Refused for a change that cannot be made later, or that changes nothing.
    """
    ends = _end(ends)
    if len(title) > MAX_TITLE:
        raise _invalid("title", f"It is longer than {MAX_TITLE} characters: shorten it.")
    changes, shown, revision = draft_changes.collect(write.replace(confirm=True), act)
    reason = write.reason or next((change.reason for change in changes if change.reason), "")
    with writing.dry_run():
        # What could not be applied now could never be.
        draft_changes.make(write.replace(confirm=True), changes, shown)
    with writing.begin():
        draft = rows.save(
            title=title.strip() or describe(changes),
            author=write.actor.name,
            reason=reason,
            ends=ends,
            revision=revision,
            changes=changes,
            shown=shown,
        )
        writing.record(write, "draft", str(draft.key), action="draft.save", before=None, after=_about(draft))
    return draft


def find(key: uuid.UUID | str) -> Draft:
    """Return a draft; raise errors.NotFound."""
    draft = rows.find(_key(key))
    if draft is None:
        raise _not_found(key)
    return draft


def describe(changes: Iterable[audit.Entry]) -> str:
    """Return what the changes of a draft are, in a few words."""
    changes = list(changes)
    more = f" and {texts.counted(len(changes) - 1, 'more change')}" if len(changes) > 1 else ""
    return texts.cut(draft_changes.describe(changes[0]), MAX_TITLE - len(more)) + more


def differing(draft: Draft, may_read: Callable[[str], bool]) -> tuple[str, ...]:
    """Return in words what is not as it was when a draft was saved, so that it cannot be applied: without the values of
    the kinds of entries that the reader may not read.
    """
    shown = [change for change in draft.changes if may_read(change.subject_kind)]
    hidden: dict[str, list[audit.Entry]] = {}
    for change in draft.changes:
        if not may_read(change.subject_kind):
            hidden.setdefault(draft_changes.word(change), []).append(change)
    return (
        *(draft_changes.difference(name, *values) for name, values in draft_changes.differing(shown)),
        *(
            f"{whose} is not as it was"
            for whose, changes in hidden.items()
            if any(draft_changes.differing(changes))
        ),
    )


def reversals(draft: Draft) -> list[audit.Entry]:
    """Return the changes that would undo those of a draft, which require the same permissions as applying it."""
    return [draft_changes.reverse(change) for change in draft.changes]


def may_apply(user: rights.User, draft: Draft) -> bool:
    """Return whether the user may apply a draft, because they may make each of its changes directly."""
    return all(map(rights.undo_check(user), reversals(draft)))


def may_see(user: rights.User, draft: Draft) -> bool:
    """Return whether the user may see a draft: it is theirs, or they may view all, or make its change."""
    return _is_own(user, draft) or rights.may_read(user, "draft") or may_apply(user, draft)


def may_discard(user: rights.User, draft: Draft) -> bool:
    """Return whether the user may discard a draft: they may make its change, or it is theirs, and is not tried."""
    return may_apply(user, draft) or (_is_own(user, draft) and not trials.running([draft.key]))


def prove(
    write: writing.Write,
    key: uuid.UUID | str,
    *,
    days: int = proofs.DAYS,
    basis: proofs.Basis = "now",
) -> proofs.Proof:
    """Return what a draft would have done to the recorded calls; raise as :func:`apply` does."""
    draft = find(key)
    return proofs.prove(lambda: make(write.replace(confirm=True), draft), days=days, basis=basis)


def make(write: writing.Write, draft: Draft) -> writing.Change:
    """Make the change of a draft, in the transaction of the caller; raise as :func:`apply` does."""
    refuse_closed(draft)
    if not draft.is_intact:
        raise errors.Refused(
            f"The draft {draft.title!r} was changed in the database since it was saved, so it is not applied."
            " Discard it."
        )
    batched = write.replace(batch=draft.key, reason=write.reason or draft.reason or draft.title)
    return draft_changes.make(batched, draft.changes, draft.shown)


def check(write: writing.Write, draft: Draft) -> None:
    """Raise as :func:`apply` would; nothing is written."""
    with writing.dry_run():
        make(write, draft)


def to_confirm(write: writing.Write, draft: Draft) -> tuple[str, ...]:
    """Return what has to be confirmed to apply a draft now, and is by the write; raise as :func:`apply` would."""
    try:
        check(write.replace(confirm=False), draft)
    except errors.ConfirmationRequired as error:
        if not write.confirm:
            raise
        return error.reasons
    return ()


def refuse_closed(draft: Draft) -> None:
    """Raise errors.Refused for a draft that was applied or has ended."""
    if draft.applied is not None:
        raise errors.Refused(f"This draft was already applied by {draft.applied_by}.")
    if not draft.is_open:
        raise errors.Refused("This draft has ended. Make the change again.")


def keep_until(draft: Draft, ends: dt.datetime) -> None:
    """Discard a draft no earlier than at ``ends``, in the transaction of the caller."""
    if draft.ends < ends:
        rows.keep_until(draft.key, ends)


def apply(write: writing.Write, key: uuid.UUID | str) -> writing.Change:
    """Make the change of a draft, once; undoing its batch undoes it.

    Raise NotAsSeen if anything that it changes is not as it was, errors.Refused if it was applied or has ended, and as
    the change itself does, such as ConfirmationRequired.
    """
    with writing.begin():
        draft = rows.find(_key(key), lock=True)
        if draft is None:
            raise _not_found(key)
        # What it would do is no longer a question, and from now on it counts in all sessions.
        for trial in trials.running([draft.key]):
            trials.end(trial.pk, "applied")
        change = make(write, draft)
        rows.applied(draft.key, write.actor.name)
    return change


def discard(write: writing.Write, key: uuid.UUID | str) -> None:
    """Delete a draft; raise errors.NotFound, or errors.Refused while it is rolled out. What was applied stays."""
    with writing.begin():
        draft = rows.find(_key(key), lock=True)
        if draft is None:
            raise _not_found(key)
        if any(trial.mode == "rollout" for trial in trials.running([draft.key])):
            raise errors.Refused("This draft is rolled out: stop that first.")
        rows.remove([draft.key])
        writing.record(
            write, "draft", str(draft.key), action="draft.discard", before=_about(draft), after=None
        )


def discard_ended() -> int:
    """Delete the drafts whose time has come; return their number."""
    deleted = 0
    for ended in rows.ended():
        with writing.begin():
            draft = rows.find(ended.key, lock=True)
            # Another process may have deleted it, or a trial keeps it longer.
            if draft is None or draft.ends > clock.now() or trials.running([draft.key]):
                continue
            rows.remove([draft.key])
            deleted += 1
            if draft.applied is None:
                clock_write = writing.Write(actor=expirations.SYSTEM)
                writing.record(
                    clock_write, "draft", str(draft.key), action="draft.end", before=_about(draft), after=None
                )
    return deleted


def _is_own(user: rights.User, draft: Draft) -> bool:
    return draft.author == user.get_username()


def _end(ends: dt.datetime | None) -> dt.datetime:
    now = clock.now()
    if ends is None:
        return now + KEPT
    if ends.tzinfo is None:
        raise _invalid("ends", f"{ends.isoformat()} has no time zone: add one, such as Z for UTC.")
    if not now < ends <= now + MAX_KEPT:
        raise _invalid("ends", f"Choose a time in the next {MAX_KEPT.days} days.")
    return ends


def _key(key: uuid.UUID | str) -> uuid.UUID:
    try:
        return key if isinstance(key, uuid.UUID) else uuid.UUID(key)
    except ValueError:
        raise _not_found(key) from None


def _not_found(key: uuid.UUID | str) -> errors.NotFound:
    return errors.NotFound("draft", str(key))


def _invalid(path: str, message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message)])


def _about(draft: Draft) -> dict[str, Any]:
    """Return what the audit log says of a draft that was saved, or is gone."""
    return {"title": draft.title, "changes": len(draft.changes)}
