"""Second factors of people who log in with a password: an authenticator app, passkeys, and recovery codes.

django-allauth stores them (``Authenticator``), and checks codes and signatures. Its memory of used codes is of one
process; here, the row of the app has it, so that a code counts once for all processes.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import auth
from django.db import transaction

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.people import logins, users
from toolbelt.core import errors
from toolbelt.store import clock, encryption

APP, PASSKEY, CODES = "totp", "webauthn", "recovery_codes"
SYSTEM = writing.by("toolbelt", via="system")
APP_NAME = "Authenticator app"
MAX_PASSKEYS = 20
MAX_NAME = 60
# How long an app's used codes are remembered: longer than the library accepts one.
_MEMORY = dt.timedelta(minutes=5)
_SEALED = "sealed:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A factor that a person has set up."""

    id: int
    name: str
    is_passkey: bool
    created: dt.datetime
    last_used: dt.datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a person can log in with besides the password. Without an app or a passkey, no one is asked."""

    app: Factor | None = None
    passkeys: Sequence[Factor] = ()
    codes_left: int = 0

    @property
    def are_asked(self) -> bool:
        """Return whether a login asks for one."""
        return self.app is not None or bool(self.passkeys)


def of_user(user: int) -> Factors:
    """Return the factors of a user, by primary key, in one query."""
    rows = list(_rows(user).order_by("created_at", "pk"))
    return Factors(
        app=next((_value(row) for row in rows if row.type == APP), None),
        passkeys=tuple(_value(row) for row in rows if row.type == PASSKEY),
        codes_left=next((_unused(row) for row in rows if row.type == CODES), 0),
    )


def are_asked(user: int) -> bool:
    """Return whether a login of this user asks for a second factor."""
    return bool(_rows(user).filter(type__in=(APP, PASSKEY)).exists())


def is_required(user: Any) -> bool:
    """Return whether a user who logs in with a password must have a second factor."""
    if conf.REQUIRE_SECOND_FACTOR == "administrators":
        return bool(user.is_superuser or user.groups.filter(name="administrator").exists())
    return bool(conf.REQUIRE_SECOND_FACTOR == "everyone")


def names_with_one() -> frozenset[str]:
    """Return the names of the users whose login asks for a second factor, in one query."""
    name = f"user__{auth.get_user_model().USERNAME_FIELD}"
    return frozenset(_model()._default_manager.filter(type__in=(APP, PASSKEY)).values_list(name, flat=True))


def new_secret() -> str:
    """Return a new secret for an app, in base32 (RFC 6238, 20 bytes)."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def add_app(write: writing.Write, user: Any, secret: str, code: str) -> list[str]:
    """Ask for this app's codes from now on; return new recovery codes if the user has none, otherwise nothing.

    Raise Invalid if the app does not show this code now, or Refused if the user has an app.
    """
    with _changing(user):
        if _rows(user.pk).filter(type=APP).exists():
            raise errors.Refused("You have an authenticator app already: remove it first.")
        row = _model()(user=user, type=APP, data={"secret": seal(secret)})
        if not _accept(row, _digits(code)):
            raise errors.Invalid(
                [
                    errors.Problem(
                        path="code",
                        message="The app does not show this code now. Enter the newest one, and check that the clock of"
                        " your device is right.",
                    )
                ]
            )
        row.save()
        return _added(write, user, APP_NAME)


def add_passkey(
    write: writing.Write, user: Any, name: str, credential: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Add a passkey whose registration was checked; return its name, and new recovery codes if the user has none.

    Raise Invalid for text that no device makes, or Refused for too many passkeys.
    """
    stored = _plain(credential)
    with _changing(user):
        count = _rows(user.pk).filter(type=PASSKEY).count()
        if count >= MAX_PASSKEYS:
            raise errors.Refused(f"You have {MAX_PASSKEYS} passkeys already: remove one first.")
        name = name.strip()[:MAX_NAME] or f"Passkey {count + 1}"
        _model()(user=user, type=PASSKEY, data={"name": name, "credential": stored}).save()
        return name, _added(write, user, name)


def rename_passkey(write: writing.Write, user: Any, factor: int, name: str) -> None:
    """Rename a passkey. Raise errors.NotFound, or Invalid without a name."""
    name = name.strip()[:MAX_NAME]
    if not name:
        raise errors.Invalid([errors.Problem(path="name", message="Enter a name.")])
    with _changing(user):
        row = _row(user, factor, PASSKEY)
        before, row.data["name"] = row.data["name"], name
        if before != name:
            row.save(update_fields=["data"])
            _record(write, user, "user.factor_rename", before=before, after=name)


def check_removal(user: Any, factor: int) -> tuple[str, bool]:
    """Return the name of an app or a passkey that may be removed, and whether it is the user's last one.

    Raise errors.NotFound, or Refused for the last one of a user who must have one.
    """
    name = _value(_row(user, factor, APP, PASSKEY)).name
    is_last = _rows(user.pk).filter(type__in=(APP, PASSKEY)).count() == 1
    if is_last and is_required(user):
        raise errors.Refused(f"You must have a second factor: set up another one before you remove {name}.")
    return name, is_last


def remove(write: writing.Write, user: Any, factor: int) -> str:
    """Remove an app or a passkey, and the recovery codes with the last one; return its name. Raise as
    :func:`check_removal` does.
    """
    with _changing(user):
        name, is_last = check_removal(user, factor)
        _row(user, factor, APP, PASSKEY).delete()
        if is_last:
            _rows(user.pk).delete()
        _record(write, user, "user.factor_remove", before=name, after=None)
    return name


def renew_codes(write: writing.Write, user: Any) -> list[str]:
    """Replace the recovery codes; return the new ones. Raise Refused for a user without another factor."""
    with _changing(user):
        if not are_asked(user.pk):
            raise errors.Refused("Recovery codes replace a second factor: set up an app or a passkey first.")
        _rows(user.pk).filter(type=CODES).delete()
        _record(write, user, "user.recovery_codes", before=None, after=None)
        return _new_codes(user)


def reset(write: writing.Write, name: str) -> bool:
    """Remove all second factors of a user, who has lost them; return whether there were any.

    Raise errors.NotFound, or Refused for people who may do more than the writer.
    """
    user = users.row_of(name)
    with _changing(user):
        users.refuse_beyond(write, user)
        is_changed = bool(_rows(user.pk).delete()[0])
        if is_changed:
            _record(write, user, "user.factor_reset", before=None, after=None)
            logins.end_all(write, user)
    return is_changed


def record_lock(user: Any, confirms: bool) -> None:
    """Record that no more codes of a user's logins, or of their confirmations, are accepted for now: someone guesses.

    Do not call it within :func:`one_at_a_time`: a write begins before it.
    """
    with writing.begin():
        after = "confirmations" if confirms else "logins"
        _record(SYSTEM, user, "user.factor_lock", before=None, after=after)


@contextlib.contextmanager
def one_at_a_time(user: Any) -> Iterator[None]:
    """Run the block while no other process checks or changes the user's factors, in one transaction."""
    with transaction.atomic():
        auth.get_user_model()._default_manager.select_for_update().get(pk=user.pk)
        yield


def accept(user: Any, code: str) -> bool:
    """Return whether this is a code of the user's app or a recovery code, which it then no longer is.

    Call it within :func:`one_at_a_time`. Raise UnreadableError if the key that encrypts the secrets is missing.
    """
    rows = _rows(user.pk).filter(type__in=(APP, CODES)).order_by("-type")
    for row in rows:
        if _accept(row, _digits(code)):
            row.save(update_fields=["last_used_at", *(["data"] if row.type == APP else [])])
            return True
    return False


def seal(text: str) -> str:
    """Return a secret as it is stored: encrypted, if there is a key."""
    return _SEALED + encryption.encrypt(text) if conf.ENCRYPTION_KEYS else text


def unseal(text: str) -> str:
    """Return the secret that was stored. Raise UnreadableError."""
    if not text.startswith(_SEALED):
        return text
    try:
        return encryption.decrypt(text.removeprefix(_SEALED))
    except errors.Refused as error:
        raise encryption.UnreadableError(
            "Your second factor was encrypted with a key that TOOLBELT_ENCRYPTION_KEYS no longer has: ask an"
            " administrator to add it, or to reset your second factor."
        ) from error


def encrypt_again() -> tuple[int, int]:
    """Encrypt all secrets with the first key, also those stored before there was one. Return how many were, and how
    many no key decrypts.
    """
    done = unreadable = 0
    for key in list(_model()._default_manager.filter(type__in=(APP, CODES)).values_list("pk", flat=True)):
        with transaction.atomic():
            row = _model()._default_manager.select_for_update().filter(pk=key).first()
            if row is None:
                continue
            field = "secret" if row.type == APP else "seed"
            try:
                row.data[field] = seal(unseal(row.data[field]))
            except encryption.UnreadableError:
                unreadable += 1
                continue
            row.save(update_fields=["data"])
            done += 1
    return done, unreadable


@contextlib.contextmanager
def _changing(user: Any) -> Iterator[None]:
    with writing.begin(), one_at_a_time(user):
        yield


def _added(write: writing.Write, user: Any, name: str) -> list[str]:
    _record(write, user, "user.factor_add", before=None, after=name)
    return [] if _rows(user.pk).filter(type=CODES).exists() else _new_codes(user)


def _plain(credential: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is read of a passkey later, without what a browser may have sent besides. Raise Invalid."""
    response, extensions = credential["response"], credential.get("clientExtensionResults")
    properties = extensions.get("credProps") if isinstance(extensions, Mapping) else None
    texts = {
        "id": credential["rawId"],
        "clientDataJSON": response["clientDataJSON"],
        "attestationObject": response["attestationObject"],
    }
    if any("\0" in text for text in texts.values()):
        # The library's decoder ignores it at some lengths, and PostgreSQL stores none.
        raise errors.Invalid([errors.Problem(path="credential", message="A passkey contains no NUL.")])
    is_alone = isinstance(properties, Mapping) and properties.get("rk") is True
    return {
        "id": texts["id"],
        "rawId": texts.pop("id"),
        "type": "public-key",
        "response": texts,
        "clientExtensionResults": {"credProps": {"rk": is_alone}},
    }


def _new_codes(user: Any) -> list[str]:
    row = _model()(user=user, type=CODES, data={"seed": seal(secrets.token_hex(40)), "used_mask": 0})
    row.save()
    codes: list[str] = row.wrap().get_unused_codes()
    return codes


def _accept(row: Any, code: str) -> bool:
    """Return whether a factor accepts a code, and note in the row that it did."""
    if not row.wrap().validate_code(code):
        return False
    now = clock.now()
    if row.type == APP:
        used = [(known, at) for known, at in row.data.get("used", ()) if at > (now - _MEMORY).timestamp()]
        if code in (known for known, _ in used):
            return False
        row.data["used"] = [*used, (code, now.timestamp())]
    row.last_used_at = now
    return True


def _digits(code: str) -> str:
    """Return a code as apps show it, without the spaces and dashes that people type."""
    return "".join(each for each in code if each in "0123456789")


def _unused(row: Any) -> int:
    # Without the key, they cannot be counted, and none can be used.
    try:
        return len(row.wrap().get_unused_codes())
    except errors.Refused:
        return 0


def _record(write: writing.Write, user: Any, action: str, *, before: Any, after: Any) -> None:
    writing.record(write, "user", user.get_username(), action=action, before=before, after=after)


def _row(user: Any, factor: int, *types: str) -> Any:
    row = _rows(user.pk).filter(pk=factor, type__in=types).first()
    if row is None:
        raise errors.NotFound("second factor", str(factor))
    return row


def _rows(user: int) -> Any:
    return _model()._default_manager.filter(user_id=user)


def _value(row: Any) -> Factor:
    return Factor(
        id=row.pk,
        name=APP_NAME if row.type == APP else row.data["name"],
        is_passkey=row.type == PASSKEY,
        created=row.created_at,
        last_used=row.last_used_at,
    )


def _model() -> Any:
    return apps.get_model("mfa", "Authenticator")
