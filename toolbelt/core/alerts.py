"""Alerts: what operators are notified of, where, and what is sent (docs/how-to/approve-from-chat.md).

Destinations are declared in a file, beside the environment that has their secrets. Nothing that is sent can decide
anything: a message has a link to a page, on which a person logs in.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from toolbelt.core import addresses, variables

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
# What there is to be notified of, with its severity and its words.
EVENTS: Mapping[str, tuple[Severity, str]] = {
    "approval-pending": ("warning", "a call waits for approval"),
    "tools-to-review": ("info", "tools await review"),
    "findings": ("warning", "tools have findings"),
    "server-failed": ("critical", "a server or plugin has failed"),
    "sign-in-needed": ("critical", "a server needs a sign-in"),
    "budget-passed": ("warning", "an agent exceeds its budget"),
    "configuration-drift": ("warning", "the configuration differs from the belt applied last"),
    "draft-observed": ("info", "a draft was observed, and is to be decided about"),
    "draft-not-applied": ("warning", "a draft could not be applied at its time"),
    "draft-reverted": ("warning", "a draft that was rolled out was taken back"),
}
# Those that are about one agent.
OF_AGENTS = ("approval-pending", "budget-passed")
TEST = "test"
Way = Literal["webhook", "slack", "apprise", "people"]
WAYS: tuple[Way, ...] = ("webhook", "slack", "apprise", "people")
_FIELDS = (*WAYS, "name", "secret", "events", "severity", "digest")
# After how many attempts a delivery has failed; the pauses between them, in seconds, and the hour (UTC) of digests.
MAX_ATTEMPTS = 8
_PAUSE, _LONGEST_PAUSE = 30, 3600
DIGEST_HOUR = 8
MAX_MAIL = 254
# How many alerts a message names.
MAX_NAMED = 20
_MAIL = re.compile(r"[^\s@,;:<>\"()]{1,64}@[A-Za-z0-9.-]{1,255}")
# How old a signature may be, in seconds, when a receiver checks it.
TOLERANCE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something to be notified of: ``subject`` says of what, once while it lasts; ``path`` is the page about it."""

    event: str
    subject: str
    text: str
    path: str
    details: Mapping[str, Any] | None = None

    @property
    def agent(self) -> str:
        """Return the key of the agent that it is about; empty if it is not about one."""
        if self.event == "budget-passed":
            return self.subject
        return str((self.details or {}).get("agent", "")) if self.event == "approval-pending" else ""

    @property
    def severity(self) -> Severity:
        """Return how urgent it is."""
        return EVENTS[self.event][0] if self.event in EVENTS else "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where alerts go: ``address`` and ``secret`` refer to variables of the environment. ``daily``: in one message a
    day. ``to`` is the mail address of a person, who gets only what the events in ``about`` say: of these agents; None:
    of any.
    """

    name: str
    way: Way
    address: str
    secret: str = ""
    events: tuple[str, ...] = tuple(EVENTS)
    severity: Severity = "info"
    daily: bool = False
    to: str = ""
    about: Mapping[str, frozenset[str] | None] | None = None

    def wants(self, alert: Alert) -> bool:
        """Return whether an alert is sent there."""
        if alert.event == TEST:
            return True
        is_urgent = SEVERITIES.index(alert.severity) >= SEVERITIES.index(self.severity)
        return alert.event in self.events and is_urgent and self._concerns(alert)

    def _concerns(self, alert: Alert) -> bool:
        if self.about is None:
            return True
        among = self.about.get(alert.event, frozenset())
        return among is None or alert.agent in among


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The destinations of an installation, and the address at which its pages are; ``problems`` say which destinations
    are left out, and why.
    """

    address: str = ""
    destinations: tuple[Destination, ...] = ()
    problems: tuple[str, ...] = ()


def plan(document: Any) -> Plan:
    """Read what a file declares. A destination with a problem gets nothing; without an address, none does."""
    if not isinstance(document, Mapping) or not set(document) <= {"address", "destinations"}:
        return Plan(problems=("The file is a mapping of address and destinations.",))
    address, listed = document.get("address"), document.get("destinations")
    problems = []
    if not _is_web_address(address):
        problems.append(
            "address: write where people open the dashboard, such as https://toolbelt.example.com."
        )
    if not isinstance(listed, list) or not listed:
        problems.append("destinations: list at least one.")
        listed = []
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in listed]
    is_usable, usable = not problems, []
    for position, entry in enumerate(listed):
        whys = [f"destinations[{position}]: {why}" for why in _problems(entry, names)]
        problems += whys
        if is_usable and not whys:
            usable.append(_destination(entry))
    return Plan(
        address=str(address).rstrip("/") if is_usable else "",
        destinations=tuple(usable),
        problems=tuple(problems),
    )


def _is_web_address(address: Any) -> bool:
    try:
        return isinstance(address, str) and urlsplit(address).scheme in ("http", "https")
    except ValueError:
        return False


def _problems(entry: Any, names: Sequence[Any]) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield "write a mapping with a name, and one of webhook, slack, apprise and people."
        return
    if unknown := sorted(map(str, set(entry) - set(_FIELDS))):
        yield f"there is no field {unknown[0]!r}: there are {', '.join(_FIELDS)}."
    name = entry.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= 64 or names.count(name) > 1:
        yield "name: write a name of its own, of up to 64 characters."
    ways = [way for way in WAYS if way in entry]
    if len(ways) != 1:
        yield "write one of webhook, slack, apprise and people, with its address."
    elif not isinstance(entry[ways[0]], str):
        yield f"{ways[0]}: write an address, such as ${{ALERTS_ADDRESS}}."
    elif ways[0] != "webhook" and variables.is_literal(entry[ways[0]]):
        yield f"{ways[0]}: this address is a secret. Put it in the environment, and write ${{ALERTS_ADDRESS}}."
    if ways == ["webhook"] and (
        not isinstance(entry.get("secret"), str) or variables.is_literal(entry["secret"])
    ):
        yield "secret: a webhook is signed. Put its secret in the environment, and write ${ALERTS_SECRET}."
    elif not isinstance(entry.get("secret", ""), str):
        yield "secret: write a variable, such as ${ALERTS_SECRET}."
    events = entry.get("events") or []
    for event in events if isinstance(events, list) else [events]:
        if not isinstance(event, str) or event not in EVENTS:
            yield f"events: there is no event {event!r}: there are {', '.join(EVENTS)}."
    if entry.get("severity", "info") not in SEVERITIES:
        yield f"severity: write {', '.join(SEVERITIES)}."
    if ways == ["people"] and "digest" in entry:
        yield "digest: people choose it themselves, on their account."
    elif entry.get("digest", "none") not in ("none", "daily"):
        yield "digest: write none or daily."


def _destination(entry: Mapping[str, Any]) -> Destination:
    way = next(way for way in WAYS if way in entry)
    return Destination(
        name=entry["name"],
        way=way,
        address=entry[way],
        secret=entry.get("secret") or "",
        events=tuple(entry.get("events") or EVENTS),
        severity=entry.get("severity") or "info",
        daily=entry.get("digest") == "daily",
    )


def address_problem(address: str) -> str | None:
    """Return why messages are not sent to an address with its variables filled in, or None."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return None
    if parts.scheme == "http" and addresses.is_this_machine(parts.hostname or ""):
        return None
    return "its address has to begin with https://"


def is_mail_address(text: str) -> bool:
    """Return whether a text is one mail address, and nothing that could be read as several or as more."""
    return len(text) <= MAX_MAIL and _MAIL.fullmatch(text) is not None


def first_attempt(destination: Destination, now: datetime) -> datetime:
    """Return when an alert of now is sent: immediately, or with the next digest."""
    if not destination.daily:
        return now
    today = now.astimezone(UTC).replace(hour=DIGEST_HOUR, minute=0, second=0, microsecond=0)
    return today if today > now else today + timedelta(days=1)


def next_attempt(attempts: int, now: datetime) -> datetime:
    """Return when a delivery is tried again that failed for the ``attempts``-th time."""
    return now + timedelta(seconds=min(_PAUSE * 4 ** (attempts - 1), _LONGEST_PAUSE))


def link(plan: Plan, alert: Alert) -> str:
    """Return the address of the page about an alert."""
    return plan.address + alert.path


def title(alerts: Sequence[Alert]) -> str:
    """Return the first line of a message."""
    if len(alerts) == 1:
        return f"Toolbelt: {alerts[0].text}"
    return f"Toolbelt: {len(alerts)} alerts"


def text(plan: Plan, alerts: Sequence[Alert]) -> str:
    """Return the text of a message, a line for each alert, with its link."""
    lines = [f"[{each.severity}] {each.text} {link(plan, each)}" for each in alerts[:MAX_NAMED]]
    more = [f"and {len(alerts) - MAX_NAMED} more"] if len(alerts) > MAX_NAMED else []
    return "\n".join([*lines, *more])


def body(destination: Destination, plan: Plan, alerts: Sequence[Alert]) -> bytes:
    """Return the body of a request to a webhook: in Slack's form, or as JSON with the details."""
    if destination.way == "slack":
        # Slack reads <, > and & as its own markup: an agent or a tool could otherwise write a link.
        escaped = text(plan, alerts).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        document: dict[str, Any] = {"text": escaped}
    else:
        document = {
            "alerts": [
                {
                    "event": each.event,
                    "severity": each.severity,
                    "subject": each.subject,
                    "text": each.text,
                    "link": link(plan, each),
                    **({"details": dict(each.details)} if each.details else {}),
                }
                for each in alerts
            ]
        }
    return json.dumps(document, ensure_ascii=False).encode(errors="replace")


def signature(secret: str, sent: bytes, at: datetime) -> str:
    """Return the signature of a body: the time, and an HMAC of the time and the body with SHA-256."""
    seconds = str(int(at.timestamp()))
    digest = hmac.new(secret.encode(), seconds.encode() + b"." + sent, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"
