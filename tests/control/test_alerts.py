"""Tests that operators are notified once of what lasts, signed, again after a failure, and without secrets."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.receivers import Receiver, receiving, receiving_mail
from toolbelt import models
from toolbelt.control import alerts, writing
from toolbelt.control.alerts import people
from toolbelt.control.people import preferences, roles
from toolbelt.control.reports import attention
from toolbelt.core import alerts as values
from toolbelt.core import call_approvals, catalog, errors, request_key
from toolbelt.runtime import alert_messages
from toolbelt.store import alerts as rows
from toolbelt.store import call_approvals as approvals
from toolbelt.store import clock, operators

pytestmark = pytest.mark.django_db

User = get_user_model()
NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
OLIVE = writing.by("olive", via="command")
WEBHOOK = "{name: ops, webhook: '${ALERTS_ADDRESS}', secret: '${ALERTS_SECRET}'}"
SECRET = "a-secret-of-ours-2000"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Receiver]:
    # The receiver is on this machine.
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True
    with receiving() as receiver, clock.stopped(NOON):
        monkeypatch.setenv("ALERTS_ADDRESS", f"{receiver.address}/hook?token=of-the-address-77")
        monkeypatch.setenv("ALERTS_SECRET", SECRET)
        yield receiver


@pytest.fixture
def declare(tmp_path: Path, settings: Any) -> Callable[..., values.Plan]:
    def declare(*destinations: str) -> values.Plan:
        file = tmp_path / "alerts.yaml"
        file.write_text(
            f"address: https://toolbelt.example.com/\ndestinations: [{', '.join(destinations)}]\n"
        )
        settings.TOOLBELT_ALERTS_FILE = str(file)
        return alerts.plan()

    return declare


def ask(agent: str = "ada", tool: str = "refund") -> call_approvals.Approval:
    rule = catalog.GateRule(key="r", effect="ask")
    key = request_key.RequestKey(agent)
    request = call_approvals.request(key, tool, [rule], {"amount": 700}, clock.now())
    added = approvals.add(request, f"{agent} {tool}", f"digest of {agent}")
    assert added is not None
    return added


def sent(receiver: Receiver) -> list[Any]:
    return [json.loads(body) for _, _, body in receiver.received]


def deliveries() -> list[tuple[str, str, int]]:
    found = models.AlertDelivery.objects.order_by("pk")
    return list(found.values_list("destination", "state", "attempts"))


def test_a_call_that_waits_is_sent_once_signed_and_with_a_link_that_decides_nothing(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    plan = declare(WEBHOOK)
    approval = ask()
    assert [alerts.run(plan) for _ in range(2)] == [1, 0]
    [(_, headers, body)] = receiver.received
    [alert] = json.loads(body)["alerts"]
    assert (alert["event"], alert["severity"], alert["subject"]) == (
        "approval-pending",
        "warning",
        approval.key,
    )
    assert alert["link"] == f"https://toolbelt.example.com/review/approvals/{approval.key}/"
    assert alert["details"]["arguments"] == {"amount": 700}
    seconds, digest = (part.partition("=")[2] for part in headers["toolbelt-signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    assert (int(seconds), digest) == (int(NOON.timestamp()), expected)


def test_what_is_over_and_begins_again_is_sent_again(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    plan = declare(WEBHOOK)
    waiting = [values.Alert(event="server-failed", subject="kb", text="kb has failed.", path="/plugins/kb/")]
    for current in (waiting, waiting, [], waiting):
        rows.note(current, lambda: plan.destinations)
    assert list(models.Alert.objects.values_list("subject", "ended")) == [("kb", None), ("kb", NOON)]
    assert deliveries() == [("ops", "waiting", 0)] * 2


def test_a_delivery_that_fails_is_tried_again_with_longer_pauses_until_it_has_failed(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    plan = declare(WEBHOOK)
    receiver.status = 500
    ask()
    now, pauses = NOON, []
    for _ in range(values.MAX_ATTEMPTS + 2):
        with clock.stopped(now):
            alerts.run(plan)
        row = models.AlertDelivery.objects.get(alert__event="approval-pending")
        pauses.append((row.next_attempt - now).total_seconds())
        now = max(now, row.next_attempt)
    assert pauses[:5] == [30, 120, 480, 1920, 3600]
    row = models.AlertDelivery.objects.get(alert__event="approval-pending")
    assert (row.state, row.attempts, row.error) == ("failed", values.MAX_ATTEMPTS, "it answered 500")
    assert len(receiver.received) == values.MAX_ATTEMPTS


def test_a_redirect_is_not_followed_and_no_receipt(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    declare(WEBHOOK)
    receiver.status = 302
    delivery = alerts.test(OLIVE, "ops")
    assert (delivery.state, delivery.error) == ("waiting", "it answered 302")
    assert [path for path, _, _ in receiver.received] == ["/hook?token=of-the-address-77"]


def test_of_two_processes_one_delivers(receiver: Receiver, declare: Callable[..., values.Plan]) -> None:
    plan = declare(WEBHOOK)
    failed = values.Alert(event="server-failed", subject="kb", text="kb has failed.", path="/plugins/kb/")
    rows.note([failed], lambda: plan.destinations)
    assert [len(rows.take("ops")) for _ in range(2)] == [1, 0]


def test_a_digest_has_a_day_in_one_message(receiver: Receiver, declare: Callable[..., values.Plan]) -> None:
    plan = declare("{name: chat, slack: '${ALERTS_ADDRESS}', digest: daily, severity: warning}")
    ask("ada", "<https://evil.example|Approve>")
    ask("bo")
    assert alerts.run(plan) == 0
    with clock.stopped(NOON + dt.timedelta(hours=20)):
        rows_before = models.AlertDelivery.objects.count()
        assert alerts.run(plan) >= 2
    assert rows_before == 2
    [document] = sent(receiver)
    assert document["text"].count("waits for approval") == 2
    assert "<https://evil.example" not in document["text"]


def test_a_destination_gets_the_events_and_severities_that_it_wants(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    only = "{name: a, slack: '${ALERTS_ADDRESS}', events: [server-failed]}"
    plan = declare(only, "{name: b, slack: '${ALERTS_ADDRESS}', severity: critical}", WEBHOOK)
    ask()
    alerts.run(plan)
    assert deliveries() == [("ops", "delivered", 1)]


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("http://chat.example.com/hook", "its address has to begin with https://"),
        ("", "ALERTS_ADDRESS"),
        ("https://127.0.0.1:1/hook-77", "AddressRefusedError"),
    ],
)
def test_an_address_is_guarded_as_those_of_servers_are_and_not_shown(
    receiver: Receiver,
    declare: Callable[..., values.Plan],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    address: str,
    error: str,
) -> None:
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = False
    declare(WEBHOOK)
    monkeypatch.setenv("ALERTS_ADDRESS", address)
    delivery = alerts.test(OLIVE, "ops")
    assert error in delivery.error
    assert "hook-77" not in delivery.error
    assert receiver.received == []


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_apprise_delivers_with_the_extra(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("apprise")
    monkeypatch.setenv("ALERTS_ADDRESS", receiver.address.replace("http", "json") + "/mail")
    declare("{name: mail, apprise: '${ALERTS_ADDRESS}'}")
    assert alerts.test(OLIVE, "mail").state == "delivered"
    [document] = sent(receiver)
    assert "https://toolbelt.example.com/alerts/" in document["message"]


@pytest.fixture
def mailed(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """Return the addresses and texts of all mail, which a mail server of this machine receives."""
    pytest.importorskip("apprise")
    with receiving_mail() as (port, mail):
        monkeypatch.setenv("ALERTS_MAIL", f"mailto://127.0.0.1:{port}?from=toolbelt@example.com")
        yield mail


def person(name: str, role: roles.Role | None, when: str = "now", **columns: Any) -> Any:
    user = User.objects.create_user(name, **{"email": f"{name}@example.com", **columns})
    if role is not None:
        roles.assign(OLIVE, name, role)
    preferences.choose(user.pk, "alerts", when)
    return user


PEOPLE = "{name: team, people: '${ALERTS_MAIL}'}"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_each_person_gets_what_they_may_decide_about_when_they_chose_it(
    declare: Callable[..., values.Plan], mailed: list[tuple[str, str]]
) -> None:
    plan = declare(PEOPLE)
    models.Agent.objects.create(key="bo")
    person("amy", "approver")
    person("otto", None)
    operators.put("bo", ["otto"])
    person("dora", "operator", "daily")
    person("vera", "viewer")
    person("nils", "operator", "")
    person("ida", "operator", is_active=False)
    person("mia", "operator", email="mia@example.com, eve@example.com")
    person("noa", "operator", email="")
    ask("ada")
    ask("bo")
    assert alerts.run(plan) == 3
    assert sorted(to for to, _ in mailed) == ["amy@example.com", "otto@example.com"]
    [text] = [text for to, text in mailed if to.startswith("otto")]
    assert ("bo waits for approval" in text, "ada waits" in text) == (True, False)
    assert "https://toolbelt.example.com/review/approvals/" in text
    # The other one chose one mail a day, and may decide no more by then.
    assert [row for row in deliveries() if row[1] == "waiting"] == [("team: dora", "waiting", 0)] * 2
    mailed.clear()
    with clock.stopped(NOON + dt.timedelta(hours=20)):
        roles.remove(OLIVE, "dora", "operator")
        assert alerts.run(plan) == 0
    assert mailed == []
    assert {row[1] for row in deliveries()} == {"delivered"}


def test_somebody_may_decide_about_every_event() -> None:
    assert {event for event in values.EVENTS if event not in people._BY_PERMISSION} == set()


def queries(act: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        act()
    return [query["sql"] for query in captured]


def test_finding_out_who_gets_what_takes_as_many_queries_for_many_people(
    declare: Callable[..., values.Plan],
) -> None:
    [destination] = declare(PEOPLE).destinations
    models.Agent.objects.create(key="bo")
    counts = []
    people_of: dict[str, roles.Role | None] = {
        "amy": "approver",
        "dora": "operator",
        "otto": None,
        "vera": "viewer",
    }
    for name, role in people_of.items():
        person(name, role)
        operators.put("bo", [name] if name == "otto" else [])
        counts.append(len(queries(lambda: people.each(destination))))
    assert len({*counts}) == 1
    about = {each.to.partition("@")[0]: each.about for each in people.each(destination)}
    assert about["amy"] == {"approval-pending": None}
    assert set(about["dora"] or ()) == set(values.EVENTS) - {"configuration-drift"}
    assert about["vera"] == {}
    operators.put("bo", ["otto"])
    [otto] = [each for each in people.each(destination) if each.to == "otto@example.com"]
    assert otto.about == dict.fromkeys(values.OF_AGENTS, frozenset({"bo"}))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_who_gets_mail_is_found_out_only_if_there_is_something_to_send(
    declare: Callable[..., values.Plan], mailed: list[tuple[str, str]]
) -> None:
    plan = declare(PEOPLE)
    person("amy", "approver")
    table = models.Preferences._meta.db_table
    alerts.run(plan)
    assert not [sql for sql in queries(lambda: alerts.run(plan)) if table in sql]
    ask()
    assert [sql for sql in queries(lambda: alerts.run(plan)) if table in sql]
    assert [to for to, _ in mailed] == ["amy@example.com"]


def test_the_last_errors_of_all_destinations_take_one_query(django_assert_num_queries: Any) -> None:
    about = models.Alert.objects.create(event="findings", text="t", path="/", begun=NOON)
    again = models.Alert.objects.create(event="findings", text="t", path="/", begun=NOON, ended=NOON)
    for alert, destination, attempts, error in (
        (again, "a", 1, "it answered 500"),
        (again, "b", 1, "it answered 500"),
        (about, "b", 1, ""),
        (again, "c", 2, "it answered 404"),
        (about, "c", 0, ""),
        (again, "z", 1, "it answered 500"),
    ):
        models.AlertDelivery.objects.create(
            alert=alert, destination=destination, attempts=attempts, error=error, next_attempt=NOON
        )
    with django_assert_num_queries(1):
        assert rows.last_errors(["c", "b", "a"]) == {"c": "it answered 404", "a": "it answered 500"}


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")
def test_a_test_of_what_people_get_is_sent_to_whoever_asks_for_it(
    declare: Callable[..., values.Plan], mailed: list[tuple[str, str]]
) -> None:
    declare(PEOPLE)
    with pytest.raises(errors.Refused, match="olive gets no mail"):
        alerts.test(OLIVE, "team")
    person("olive", None)
    assert alerts.test(OLIVE, "team").state == "delivered"
    assert [to for to, _ in mailed] == ["olive@example.com"]


def test_without_the_extra_it_is_said(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    declare("{name: mail, apprise: '${ALERTS_ADDRESS}'}")
    assert "toolbelt-switchboard[alerts]" in alerts.test(OLIVE, "mail").error


def test_a_test_is_audited_and_an_unknown_destination_is_named(
    receiver: Receiver, declare: Callable[..., values.Plan]
) -> None:
    declare(WEBHOOK)
    assert alerts.test(OLIVE, "ops").state == "delivered"
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject_key, entry.actor) == ("alert.test", "ops", "olive")
    with pytest.raises(errors.NotFound):
        alerts.test(OLIVE, "nowhere")


@pytest.mark.parametrize(
    ("destination", "problem"),
    [
        ("{name: a, webhook: 'https://x.example'}", "secret: a webhook is signed."),
        ("{name: a, webhook: 'https://x.example', secret: written-out}", "secret: a webhook is signed."),
        ("{name: a, slack: 'https://hooks.example/T0/B0'}", "slack: this address is a secret."),
        ("{name: a, slack: '${A}', events: [ghost]}", "there is no event 'ghost'"),
        ("{name: a, slack: '${A}', events: 5}", "there is no event 5"),
        ("{name: a, slack: '${A}', events: [[a]]}", "there is no event ['a']"),
        ("{name: a, slack: '${A}', secret: 5}", "secret: write a variable"),
        ("{name: a, slack: '${A}', severity: loud}", "severity: write info"),
        ("{name: a, slack: '${A}', digest: hourly}", "digest: write none or daily"),
        ("{name: a, slack: '${A}', apprise: '${A}'}", "write one of webhook, slack, apprise and people"),
        ("{name: a, slack: '${A}', color: red}", "there is no field 'color'"),
        ("{name: a, people: 'mailto://localhost'}", "people: this address is a secret."),
        ("{name: a, people: '${A}', digest: daily}", "digest: people choose it themselves"),
        ("5", "write a mapping"),
    ],
)
def test_a_destination_that_cannot_be_used_is_explained_and_the_others_get_alerts(
    receiver: Receiver, declare: Callable[..., values.Plan], destination: str, problem: str
) -> None:
    plan = declare(destination, WEBHOOK)
    assert any(problem in each for each in plan.problems), plan.problems
    assert all(each.startswith("destinations[0]: ") for each in plan.problems)
    ask()
    assert alerts.run(plan) == 1
    assert any(problem in each for each in alerts.problems())
    with pytest.raises(errors.Invalid):
        alerts.test(OLIVE, "a")


@pytest.mark.parametrize("address", ["http://[", "https://[::1", "no address", "https://x.example:99999/"])
def test_a_destination_that_fails_stops_no_other_and_is_said(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("ALERTS_WRONG", address)
    first = "{name: a, slack: '${ALERTS_WRONG}'}"
    plan = declare(first, WEBHOOK, first.replace("name: a", "name: z"))
    ask()
    assert alerts.run(plan) == 1
    assert deliveries() == [("a", "waiting", 1), ("ops", "delivered", 1), ("z", "waiting", 1)]
    said = alerts.problems()
    assert [each.split(":")[0] for each in said] == ["Alerts do not reach a", "Alerts do not reach z"]
    assert address not in "".join(said)


def test_an_error_of_any_kind_stops_neither_the_others_nor_what_is_due(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = declare("{name: a, slack: '${ALERTS_ADDRESS}'}", WEBHOOK)
    send = alerts._send
    assert send is not None

    def fail_at_a(destination: values.Destination, *args: Any) -> str:
        if destination.name == "a":
            raise RuntimeError(SECRET)
        return send(destination, *args)

    monkeypatch.setattr(alerts, "_send", fail_at_a)
    ask()
    assert alerts.run(plan) == 1
    assert alerts.problems() == ["Alerts do not reach a: RuntimeError."]

    def fail() -> Any:
        raise RuntimeError

    monkeypatch.setattr(attention, "load", fail)
    monkeypatch.setattr(alerts, "_send", send)
    with clock.stopped(NOON + dt.timedelta(minutes=1)):
        assert alerts.run(plan) == 1
        assert alerts.problems() == []


def test_what_cannot_be_found_out_neither_hides_nor_ends_the_rest(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = declare(WEBHOOK)
    failed = values.Alert(event="server-failed", subject="files", text="files has failed.", path="/")
    rows.note([failed], lambda: plan.destinations)

    def fail() -> Any:
        raise RuntimeError

    monkeypatch.setattr(attention, "load", fail)
    ask()
    assert alerts.run(plan) == 2
    lasting = models.Alert.objects.filter(ended=None).order_by("event")
    assert list(lasting.values_list("event", flat=True)) == ["approval-pending", "server-failed"]


def test_a_receiver_that_never_ends_its_answer_holds_up_nothing(
    receiver: Receiver, declare: Callable[..., values.Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(WEBHOOK)
    monkeypatch.setattr(alert_messages, "SECONDS", 0.5)
    receiver.is_endless = True
    delivery = alerts.test(OLIVE, "ops")
    assert (delivery.state, delivery.error) == ("waiting", "it did not answer within 0.5 seconds")


def test_an_address_that_is_none_is_a_problem_of_the_file() -> None:
    destination = {"name": "a", "slack": "${A}"}
    (problem,) = values.plan({"address": "http://[", "destinations": [destination]}).problems
    assert problem.startswith("address: ")


def test_without_a_file_nothing_is_looked_at(settings: Any, django_assert_num_queries: Any) -> None:
    settings.TOOLBELT_ALERTS_FILE = ""
    with django_assert_num_queries(0):
        alerts.run_planned()
