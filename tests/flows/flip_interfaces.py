"""The interfaces through which an operator flips a switch or overrides a tool, as one function each."""

from __future__ import annotations

import contextlib
import getpass
import io
import json
import urllib.parse
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from django.contrib.auth import models as auth
from django.core.management import CommandError, call_command
from django.test import Client

from tests import fast_fixtures
from tests.admin import browsing
from tests.admin import conftest as admin
from tests.api.conftest import Asking
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.people import tokens
from toolbelt.core import errors

OPERATOR = "olga"
SETUP = writing.by("setup", via="command")


class Flip(NamedTuple):
    """A flip by an operator; ``meanwhile`` runs after they read the state and before they change it."""

    agent: str
    key: str
    on: bool | None
    confirm: bool = False
    reason: str = ""
    meanwhile: Callable[[], object] = lambda: None

    @property
    def is_switch(self) -> bool:
        """Return whether the key names a toolkit; an unknown key counts as a toolkit."""
        return not models.Tool.objects.filter(key=self.key).exists()

    @property
    def path(self) -> str:
        """Return the path of the switch or override, in the dashboard and the API."""
        return f"/agents/{self.agent}/{'switches' if self.is_switch else 'overrides'}/{self.key}"

    def read(self) -> bool | None:
        """Return the stored value, then run ``meanwhile``."""
        with contextlib.suppress(errors.NotFound):
            was = tools_config.read(self.agent).get(self.key)
            self.meanwhile()
            return was
        return None


class Answer(NamedTuple):
    """Whether the flip was accepted, and the text that the operator reads."""

    accepted: bool
    text: str


class Interface(NamedTuple):
    """An interface for operators: how it appears in the audit log, and how it flips."""

    via: str
    actor: str
    flip: Callable[[Flip], Answer]


def _operator() -> auth.User:
    existing = auth.User.objects.filter(username=OPERATOR).first()
    return existing or auth.User.objects.create_superuser(OPERATOR)


def _control(flip: Flip) -> Answer:
    write = writing.by(OPERATOR, via="import", reason=flip.reason).replace(confirm=flip.confirm)
    flip_or_override = switches.flip if flip.is_switch else switches.override
    try:
        flip_or_override(write, flip.agent, flip.key, flip.on, was=flip.read())
    except errors.ToolbeltError as error:
        return Answer(False, str(error))
    return Answer(True, "")


def _command(flip: Flip) -> Answer:
    flip.read()
    on = {True: "on", False: "off", None: "default"}[flip.on]
    out = io.StringIO()
    options = ["--confirm"] if flip.confirm else []
    try:
        call_command("flip", flip.agent, flip.key, on, "--reason", flip.reason, *options, stdout=out)
    except CommandError as error:
        return Answer(False, str(error))
    return Answer(True, out.getvalue())


def _api(flip: Flip) -> Answer:
    api_client = Asking(tokens.issue(SETUP, user=_operator().username, scope="write").text)
    was = flip.read()
    if flip.on is None:
        parameters = {"was": "unset" if was is None else json.dumps(was), "confirm": json.dumps(flip.confirm)}
        query = urllib.parse.urlencode({**parameters, "reason": flip.reason})
        answer = api_client.delete(f"{flip.path}?{query}")
    else:
        body = {"on": flip.on, "was": was, "confirm": flip.confirm, "reason": flip.reason}
        answer = api_client.put(flip.path, body)
    return Answer(answer.status_code == 200, " ".join(_texts(answer.json())))


def _texts(document: Any) -> list[str]:
    """Return all texts in a JSON document."""
    match document:
        case str():
            return [document]
        case dict():
            return [text for value in document.values() for text in _texts(value)]
        case list():
            return [text for value in document for text in _texts(value)]
    return []


def _web(flip: Flip, headers: Mapping[str, str] = MappingProxyType({})) -> Answer:
    browser = fast_fixtures.logged_in(_operator())
    words = {True: "true", False: "false", None: "unset"}
    fields = {"on": words[flip.on], "was": words[flip.read()], "reason": flip.reason}
    if flip.confirm:
        fields["confirm"] = "yes"
    answer: Any = browser.post(f"{flip.path}/", fields, headers=headers)
    if answer.status_code == 303:
        answer = browser.get(answer.headers["Location"])
    page = (answer.context or {}).get("page")
    notice = getattr(page, "notice", None)
    accepted = answer.status_code == 200 and notice is not None and notice.tone != "refused"
    return Answer(accepted, notice.text if notice is not None else " ".join(answer.content.decode().split()))


def _htmx(flip: Flip) -> Answer:
    return _web(flip, {"HX-Request": "true"})


def _admin(flip: Flip) -> Answer:
    client: Client = fast_fixtures.logged_in(_operator())
    table, column, model = (
        ("switches", "toolkit", models.Toolkit) if flip.is_switch else ("overrides", "tool", models.Tool)
    )
    row: Any = model._default_manager.get(key=flip.key)
    page = browsing.open_(client, admin.address(admin.agent(flip.agent))).type(reason=flip.reason)
    if flip.key not in tools_config.read(flip.agent):
        page = page if flip.on is None else page.line(table, **{column: row}, on=flip.on)
    elif flip.on is None:
        page = page.remove(table, page.number(table, column, row))
    else:
        page = page.change(table, page.number(table, column, row), on=flip.on)
    flip.meanwhile()
    page = page.send()
    if not page.was_saved and "confirm" in page.errors and flip.confirm:
        page = page.tick("confirm").send()
    if page.was_saved:
        return Answer(True, "")
    # The error is at the line of the switch, at its table if the line was removed, or at the confirmation.
    return Answer(False, " ".join(text for at, texts in page.errors.items() if at for text in texts))


INTERFACES = {
    "control": Interface("import", OPERATOR, _control),
    "dashboard": Interface("screen", OPERATOR, _web),
    "dashboard with scripts": Interface("screen", OPERATOR, _htmx),
    "admin": Interface("admin", OPERATOR, _admin),
    "API": Interface("api", OPERATOR, _api),
    "command": Interface("command", getpass.getuser(), _command),
}
