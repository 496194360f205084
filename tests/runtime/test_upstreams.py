"""Do calls of an upstream server's tools pass the same gate, and reach the server or say why not?"""

from __future__ import annotations

import dataclasses
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import listing, scripting, serving
from toolbelt.control import actors, belts, entries
from toolbelt.control import upstreams as configured
from toolbelt.core import calls as gate
from toolbelt.core import catalog, errors
from toolbelt.plugins.upstream import connection as live
from toolbelt.runtime import calls, plugins, secrets, upstreams
from toolbelt.store import snapshots

# What a connection tells unasked is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

OPERATOR = actors.Actor(name="olive", via="command")
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


@pytest.fixture
def heard() -> Iterator[Callable[[], None]]:
    """Give what waits until what a server told was written."""
    was_heard = threading.Event()

    def listen(name: str, answer: upstreams.Answer) -> None:
        configured.heard(name, answer)
        was_heard.set()

    def wait() -> None:
        assert was_heard.wait(20)
        was_heard.clear()

    upstreams.tell(listen)
    yield wait
    upstreams.tell(configured.heard)


def add(name: str, connection: dict[str, Any], **given: Any) -> None:
    configured.add(OPERATOR, name, connection, trusted=True, **given)


def refresh(*names: str) -> dict[str, configured.Recorded]:
    return upstreams.refresh(names, lambda name, answer: configured.record(OPERATOR, name, answer))


def give(*tools: str) -> None:
    belts.import_(OPERATOR, {"agents": [{"key": "ada", "tools": list(tools)}]})


def ready(script: scripting.Script, *tools: str, **connection: Any) -> None:
    """Add the scripted server, and give the agent these tools of it."""
    add("files", {**script.connection, **connection})
    assert refresh("files")["files"].error == ""
    give(*(f"files__{tool}" for tool in tools))


def content(tool: str, arguments: Any = None) -> Any:
    answer = calls.run("ada", tool, {} if arguments is None else arguments)
    assert isinstance(answer, calls.Result), answer
    return answer.content


def refusal(tool: str, arguments: Any = None) -> tuple[str, str]:
    answer = calls.run("ada", tool, {} if arguments is None else arguments)
    assert isinstance(answer, gate.Refusal), answer
    return answer.code, answer.message


# Real servers


def test_the_git_server_works_on_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "notes.txt").write_text("hello")
    add("git", {"command": str(BIN / "mcp-server-git"), "args": ["--repository", str(tmp_path)]})

    done = refresh("git")["git"]
    give("git__git_status")

    assert "git__git_commit" in done.created
    assert "notes.txt" in content("git__git_status", {"repo_path": str(tmp_path)})["result"]
    assert snapshots.catalog().tools["git__git_status"].annotations


def test_the_time_server_answers_in_structure() -> None:
    add("time", {"command": str(BIN / "mcp-server-time"), "args": ["--local-timezone", "UTC"]})
    refresh("time")
    give("time__convert_time")

    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}

    assert "21:00" in json.dumps(content("time__convert_time", arguments))
    assert refusal("time__convert_time", {"time": 12})[0] == "invalid-arguments"


def test_the_fetch_server_fetches_a_page() -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"a page of the test")

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        try:
            options = ["--ignore-robots-txt", "--allow-private-ips"]
            add("fetch", {"command": str(BIN / "mcp-server-fetch"), "args": options})
            done = refresh("fetch")["fetch"]
            give("fetch__fetch")
            fetched = content("fetch__fetch", {"url": f"http://127.0.0.1:{page.server_port}/"})
        finally:
            page.shutdown()

    assert done.created == ("fetch__fetch",)
    assert "a page of the test" in json.dumps(fetched)


# Over HTTP


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving.served() as address:
        yield address


def bearing(address: str) -> dict[str, Any]:
    return {"url": address, "headers": {"Authorization": "Bearer ${MCP_TOKEN}"}}


def test_a_server_over_http_is_told_its_token_and_answers(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    add("served", bearing(address))
    done = refresh("served")["served"]
    give("served__add")

    assert "served__add" in done.created
    assert content("served__add", {"one": 1, "other": 2}) == {"result": 3}
    assert upstreams.status("served").protocol == "2026-07-28"


def test_a_token_comes_from_the_servers_own_secrets_first(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOKEN", "another")
    monkeypatch.setenv("TOOLBELT_SECRET_SERVED__MCP_TOKEN", serving.TOKEN)
    add("served", bearing(address))

    assert refresh("served")["served"].error == ""


def test_a_wrong_token_is_told_and_shown_nowhere(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "wrong-t0ken")
    add("served", bearing(address))

    error = refresh("served")["served"].error

    assert "HTTP 401" in error
    assert "wrong-t0ken" not in error


def test_toolbelts_own_variables_are_told_to_no_server(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@db/x")
    add("served", {"url": address, "headers": {"Authorization": "Bearer ${DATABASE_URL}"}})

    assert refresh("served")["served"].error == (
        "DATABASE_URL is Toolbelt's own: no server is told it. Name another variable."
    )


def test_a_change_that_a_server_over_http_tells_of_is_taken_in(
    address: str, monkeypatch: pytest.MonkeyPatch, heard: Callable[[], None]
) -> None:
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    add("served", bearing(address))
    refresh("served")
    give("served__grow")

    content("served__grow")
    heard()

    assert "served__fresh" in snapshots.catalog().tools


def test_where_nobody_listens_the_address_is_told() -> None:
    add("served", {"url": "http://127.0.0.1:9/mcp"})

    assert "onnect" in refresh("served")["served"].error


# Scripted


def test_an_answer_is_what_a_plugins_would_be(script: scripting.Script) -> None:
    ready(script, "echo", "structure", "picture")

    assert content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert content("files__structure") == {"n": 1}
    assert content("files__picture")["content"][1]["mimeType"] == "image/png"
    assert script.starts == 1


def test_a_tool_of_another_name_is_asked_for_by_its_servers_own(script: scripting.Script) -> None:
    script.lists(listing.tool("say it/again"))
    ready(script, "say_it_again")

    assert content("files__say_it_again", {"a": 1}) == {"result": '{"a": 1}'}


def test_what_the_tool_says_of_its_failure_reaches_the_model(script: scripting.Script) -> None:
    ready(script, "fail", "refuse")

    assert refusal("files__fail") == ("tool-failed", "There is no such file.")
    assert refusal("files__refuse") == ("tool-failed", "I do not like this.")


def test_a_server_that_hangs_is_given_its_own_time(script: scripting.Script) -> None:
    ready(script, "hang", timeout=1)

    assert refusal("files__hang") == ("timed-out", "files__hang did not answer within 1 s.")


def test_a_call_has_no_more_time_than_any(script: scripting.Script, settings: Any) -> None:
    ready(script, "hang", "echo")
    content("files__echo")
    settings.TOOLBELT_CALL_SECONDS = 0.2

    assert refusal("files__hang") == ("timed-out", "files__hang did not answer within 0.2 s.")


def test_a_server_that_dies_in_mid_call_is_there_for_the_next(script: scripting.Script) -> None:
    ready(script, "die", "echo")

    assert refusal("files__die")[0] == "tool-unavailable"
    assert content("files__echo", {"a": 1}) == {"result": '{"a": 1}'}
    assert script.starts == 2


def test_an_answer_that_is_too_large_is_refused(script: scripting.Script, settings: Any) -> None:
    ready(script, "echo")
    settings.TOOLBELT_CALL_RESULT_BYTES = 1_000

    assert refusal("files__echo", {"a": "x" * 2_000})[0] == "tool-failed"


def test_a_tool_that_was_switched_off_a_moment_ago_is_refused(script: scripting.Script) -> None:
    ready(script, "echo")
    content("files__echo")

    entries.change(OPERATOR, "plugin", "files", {"active": False})

    assert refusal("files__echo")[0] == "tool-unavailable"
    assert script.starts == 1


def test_a_tool_that_changed_behind_our_back_is_not_called(
    script: scripting.Script, heard: Callable[[], None]
) -> None:
    ready(script, "echo")
    plugins.stop()
    script.lists(listing.tool("echo", "Says it again, and sends it away."))

    assert refusal("files__echo")[0] == "tool-unavailable"
    heard()

    assert catalog.is_changed(snapshots.catalog().tools["files__echo"])
    (change,) = [one for one in configured.review("files").changes if one.kind == "changed"]
    assert change.differences[0].old == "Says it again."


def test_a_change_that_a_server_tells_of_is_held(script: scripting.Script, heard: Callable[[], None]) -> None:
    ready(script, "announce", "echo")
    content("files__echo")
    script.lists(listing.tool("announce", "Does announce."), listing.tool("echo", "Says it again!"))

    content("files__announce")
    heard()

    assert refusal("files__echo")[0] == "tool-unavailable"


def test_a_server_that_is_reached_otherwise_is_reached_so_from_then_on(
    script: scripting.Script, tmp_path: Path
) -> None:
    ready(script, "environment")
    names = {"names": ["LEVEL"]}
    assert content("files__environment", names) == {"result": '{"LEVEL": null}'}

    configured.reconnect(OPERATOR, "files", {**script.connection, "env": {"LEVEL": "high"}})

    assert content("files__environment", names) == {"result": '{"LEVEL": "high"}'}


def test_one_slow_server_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    slow, quick = _two(tmp_path)
    slow.is_made("silent")
    add("slow", {**slow.connection, "timeout": 2})
    add("quick", quick.connection)
    came = []

    upstreams.refresh(["slow", "quick"], lambda name, answer: came.append((name, bool(answer.error))))

    assert came == [("quick", False), ("slow", True)]


def test_nobody_waits_where_nobody_may(tmp_path: Path) -> None:
    slow, _ = _two(tmp_path)
    add("slow", {**slow.connection, "timeout": 20})
    done = threading.Event()

    upstreams.refresh_soon(["slow"], lambda name, answer: done.set())
    assert upstreams.status("slow").is_being_asked
    assert done.wait(20)


def test_a_server_that_is_not_there_is_named_before_any_is_asked(script: scripting.Script) -> None:
    add("files", script.connection)

    with pytest.raises(errors.NotFound, match="Did you mean files"):
        refresh("files", "fils")
    assert script.starts == 0


def test_the_status_says_what_is_known_without_asking(script: scripting.Script) -> None:
    add("files", script.connection)
    assert upstreams.status("files").state == "idle"

    refresh("files")
    now = upstreams.status("files")
    assert (now.state, now.server, now.tools, now.error) == ("open", "scripted 1", len(scripting.ODD) + 1, "")
    assert now.answered is not None

    plugins.stop()
    assert upstreams.status("files").state == "idle"
    assert upstreams.status("files").server == "scripted 1"


# One that tells whatever a test lets it tell


class Telling:
    """Stands where a connection does; ``made`` are all of them, in order."""

    made: list[Telling]

    def __init__(self, reached: Any, *, environ: Any, told: Callable[[upstreams.Answer], None]) -> None:
        self.reached, self.environ, self.told = reached, environ, told
        self.is_closed = threading.Event()
        self.made.append(self)

    async def ask(self) -> upstreams.Answer:
        return upstreams.Answer(stderr="Bearer s3cret-t0ken")

    async def close(self) -> None:
        self.is_closed.set()

    def status(self) -> live.Status:
        return live.Status(state="open")


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> type[Telling]:
    monkeypatch.setattr(live, "Server", Telling)
    monkeypatch.setattr(Telling, "made", [], raising=False)
    add("files", {"command": "x"})
    return Telling


def test_a_secret_that_a_server_says_back_is_recorded_nowhere(telling: type[Telling]) -> None:
    secrets.handing_out("s3cret-t0ken")
    seen: list[upstreams.Answer] = []
    done = threading.Event()
    upstreams.refresh(["files"], lambda name, answer: seen.append(answer))

    def listen(name: str, answer: upstreams.Answer) -> None:
        seen.append(answer)
        done.set()

    upstreams.tell(listen)
    try:
        telling.made[0].told(upstreams.Answer(error="No s3cret-t0ken", stderr="s3cret-t0ken"))
        assert done.wait(20)
    finally:
        upstreams.tell(configured.heard)

    assert [(one.error, one.stderr) for one in seen] == [
        ("", "Bearer [withheld]"),
        ("No [withheld]", "[withheld]"),
    ]


def test_a_server_that_never_stops_telling_is_recorded_one_at_a_time_and_at_last(
    telling: type[Telling],
) -> None:
    seen: list[str] = []
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def listen(name: str, answer: upstreams.Answer) -> None:
        seen.append(answer.server)
        begun.set()
        assert go_on.wait(20)
        if answer.server == "99":
            done.set()

    refresh("files")
    upstreams.tell(listen)
    try:
        told = telling.made[0].told
        told(upstreams.Answer(server="first"))
        assert begun.wait(20)
        for number in range(100):
            told(upstreams.Answer(server=str(number)))
        go_on.set()
        assert done.wait(20)
    finally:
        upstreams.tell(configured.heard)

    assert seen == ["first", "99"]


def off() -> None:
    entries.change(OPERATOR, "plugin", "files", {"active": False})


def reconnected() -> None:
    configured.reconnect(OPERATOR, "files", {"command": "y"})


def stopped_at_once() -> None:
    entries.change(OPERATOR, "plugin", "files", {"blocked": True})


@pytest.mark.parametrize("change", [off, reconnected, stopped_at_once])
def test_a_server_that_is_no_longer_wanted_so_is_ended_with_the_next_question(
    telling: type[Telling], change: Callable[[], None]
) -> None:
    refresh("files")
    assert not telling.made[0].is_closed.is_set()

    change()
    snapshots.catalog()

    assert telling.made[0].is_closed.wait(20)


def test_a_server_that_is_off_is_asked_and_not_kept(telling: type[Telling]) -> None:
    off()

    assert refresh("files")["files"].error == ""

    assert telling.made[0].is_closed.wait(20)


def test_a_name_opens_no_other_plugins_secrets(
    telling: type[Telling], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLBELT_SECRET_GH__KEY", "of-the-namespace")
    belts.import_(OPERATOR, {"plugins": [{"name": "other", "namespace": "gh"}]})
    row = catalog.Plugin(name="GH", upstream='{"command": "x"}')
    upstreams.attend(snapshots.catalog())

    upstreams._ask(row)
    assert "KEY" not in telling.made[-1].environ

    upstreams._ask(dataclasses.replace(row, name="free"))
    monkeypatch.setenv("TOOLBELT_SECRET_FREE__KEY", "of-its-own")
    assert telling.made[-1].environ["KEY"] == "of-its-own"


def _two(tmp_path: Path) -> tuple[scripting.Script, scripting.Script]:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return scripting.Script(tmp_path / "one"), scripting.Script(tmp_path / "two")
