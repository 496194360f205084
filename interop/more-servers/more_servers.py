"""More servers to compare: what each has that those of the part ``servers`` do not, and the calls of every tool."""

from __future__ import annotations

import json
from pathlib import Path

from comparing import Call, Server
from published import NODE_PACKAGES, PYTHON_PROGRAMS

# The most that the PDF server reads at once.
PDF_BYTES = 524_288
# A small PDF, without a table of its objects, and with a comment that makes it larger than what is read at once.
PDF = (
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\n%" + "x" * PDF_BYTES + "\n"
    "trailer<</Root 1 0 R>>\n"
)
CORTEX = NODE_PACKAGES / "@temporal-cortex/cortex-mcp-linux-x64/bin/cortex-mcp"


def servers(work: Path, api: str) -> list[Server]:
    """Return the servers, which run in a directory. ``api`` is the address of the API that one of them offers."""
    return [_shell(), _kernel(), _sqlite(work), _openapi(work, api), _pdf(work), _system_monitor(), _cortex()]


def _node(name: str) -> str:
    return str(NODE_PACKAGES / ".bin" / name)


def _shell() -> Server:
    def run(*command: str, **options: object) -> Call:
        return Call(tool="shell_execute", arguments={"command": command, **options})

    return Server(
        name="shell",
        package="mcp-shell-server",
        command=[str(PYTHON_PROGRAMS / "mcp-shell-server")],
        # It lists them as a Python set, in another order in each process.
        env={"ALLOW_COMMANDS": "cat,echo,grep,head,ls,sort,tail,wc"},
        varying=["shell_execute"],
        calls=[
            run("echo", "Hello, wörld ✓"),
            run("sort", stdin="b\na\n"),
            run("cat", stdin="𝄞", directory="/"),
            run("ls", "/none"),
            run("rm", "none.txt"),
            run(),
            run("cat", "/dev/zero", timeout=1),
            Call(tool="shell_execute", arguments={"command": ["echo", "one"]}, varied=True),
        ],
    )


def _kernel() -> Server:
    def execute(code: str) -> Call:
        return Call(tool="execute", arguments={"code": code})

    return Server(
        name="kernel",
        package="clikernel",
        command=[str(PYTHON_PROGRAMS / "clikernel-mcp")],
        # Its state is a process of its own, which a call may end.
        calls=[
            execute("x = 40 + 2"),
            execute("x"),
            execute("print('wörld ✓'); 1 / 0"),
            Call(tool="interrupt"),
            execute("import os; os._exit(3)"),
            execute("x"),
            execute("y = 1"),
            Call(tool="restart"),
            execute("y"),
        ],
    )


def _sqlite(work: Path) -> Server:
    def query(tool: str, text: str, *, varied: bool = False) -> Call:
        return Call(tool=tool, arguments={"query": text}, varied=varied)

    return Server(
        name="sqlite",
        package="mcp-server-sqlite",
        command=[str(PYTHON_PROGRAMS / "mcp-server-sqlite"), "--db-path", str(work / "a.sqlite")],
        calls=[
            query("create_table", "CREATE TABLE pets (name TEXT, age INTEGER)"),
            query("write_query", "INSERT INTO pets VALUES ('Ünni ✓', 3), ('Bo', NULL)"),
            query("read_query", "SELECT * FROM pets", varied=True),
            query("read_query", "DROP TABLE pets"),
            query("write_query", "SELECT 1"),
            query("create_table", "SELECT 1"),
            Call(tool="list_tables", varied=True),
            Call(tool="describe_table", arguments={"table_name": "pets"}, varied=True),
            Call(tool="append_insight", arguments={"insight": "Pets are few."}),
        ],
        prompts={"mcp-demo": {"topic": "pets"}},
    )


def _openapi(work: Path, api: str) -> Server:
    ok = {"200": {"description": "What was asked for."}}
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}}
    kinds = {"type": "string", "enum": ["cat", "dog"]}
    pet = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "kind": kinds}}
    body = {"required": True, "content": {"application/json": {"schema": pet}}}
    by_id = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    pets = {
        "get": {
            "operationId": "listPets",
            "summary": "List the pets",
            "parameters": [limit],
            "responses": ok,
        },
        "post": {"operationId": "addPet", "summary": "Add a pet", "requestBody": body, "responses": ok},
    }
    one = {"get": {"operationId": "getPet", "summary": "Get a pet", "parameters": by_id, "responses": ok}}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Pets", "version": "1.0.0"},
        "paths": {"/pets": pets, "/pets/{id}": one},
    }
    return Server(
        name="openapi",
        package="@ivotoby/openapi-mcp-server",
        command=[
            _node("openapi-mcp-server"),
            *("--api-base-url", api, "--openapi-spec", str(work / "openapi.json")),
        ],
        files={"openapi.json": json.dumps(document)},
        calls=[
            Call(tool="lst-pets", arguments={"limit": 2}, varied=True),
            Call(tool="add-pet", arguments={"name": "Ünni ✓", "kind": "cat"}),
            Call(tool="get-pet", arguments={"id": "7"}),
            Call(tool="get-pet", arguments={"id": "none"}),
        ],
    )


def _pdf(work: Path) -> Server:
    url, view = str(work / "a.pdf"), {"viewUUID": "{view}"}

    def from_screen(tool: str, **arguments: object) -> Call:
        return Call(tool=tool, arguments=arguments, of_screen=True)

    return Server(
        name="pdf",
        package="@modelcontextprotocol/server-pdf",
        command=[_node("mcp-pdf-server"), "--stdio", url],
        files={"a.pdf": PDF},
        calls=[
            Call(tool="list_pdfs", varied=True),
            Call(
                tool="display_pdf",
                arguments={"url": url},
                captures={"view": r"viewUUID: ([0-9a-f-]{36})"},
            ),
            Call(tool="interact", arguments={**view, "action": "navigate", "page": 1}),
            from_screen("poll_pdf_commands", **view),
            from_screen("read_pdf_bytes", url=url, byteCount=8),
            from_screen("read_pdf_bytes", url=url, byteCount=PDF_BYTES),
            from_screen("read_pdf_bytes", url=url, byteCount="many"),
            from_screen("submit_page_data", requestId="none", pages=[]),
            from_screen("submit_save_data", requestId="none", data="eA=="),
            from_screen("submit_viewer_state", requestId="none"),
            from_screen("save_pdf", url=url, data="eA=="),
            Call(tool="display_pdf", arguments={"url": "/none.pdf"}),
        ],
        # Its screen has 4.4 MB, and what it reads for the screen is a third larger as base64.
        options=["--resource-bytes", "4500000", "--result-bytes", str(PDF_BYTES * 3 // 2)],
        normalised={"times of changes": (r'"mtimeMs": [\d.]+', '"mtimeMs": <time>')},
    )


def _system_monitor() -> Server:
    return Server(
        name="system-monitor",
        package="@modelcontextprotocol/server-system-monitor",
        command=[_node("mcp-system-monitor-server"), "--stdio"],
        calls=[
            Call(tool="get-system-info", varied=True),
            Call(tool="poll-system-stats", of_screen=True, differs="it measures the machine"),
        ],
    )


def _cortex() -> Server:
    start, end = "2026-03-01T10:00:00Z", "2026-03-02T11:30:00Z"
    period = {"start": start, "end": end}
    contact = {"contact_name": "Zoë", "contact_email": "zoe@example.com"}
    slots = [{"start": start, "end": "2026-03-01T10:30:00Z"}]
    proposal = {**contact, "duration_minutes": 30, "proposed_slots": slots, "timezone": "Europe/Berlin"}
    rule = {"rrule": "FREQ=DAILY", "dtstart": "2026-03-28T10:00:00", "timezone": "Europe/Berlin", "count": 3}
    booking = {"slug": "zoe", **period, "title": "Tea", "attendee_email": "zoe@example.com"}
    return Server(
        name="cortex",
        package="@temporal-cortex/cortex-mcp-linux-x64",
        # It ends when it is asked for what it does not know, such as the newer revision.
        command=[str(CORTEX)],
        calls=[
            Call(tool="get_temporal_context", differs="it tells the time"),
            Call(tool="resolve_datetime", arguments={"expression": "nonsense"}, varied=True),
            Call(
                tool="convert_timezone",
                arguments={"datetime": start, "target_timezone": "Asia/Tokyo"},
                varied=True,
            ),
            Call(tool="compute_duration", arguments=period, varied=True),
            Call(tool="adjust_timestamp", arguments={"datetime": start, "adjustment": "+1d"}, varied=True),
            Call(tool="expand_rrule", arguments=rule, varied=True),
            Call(tool="list_calendars"),
            Call(tool="list_events", arguments={"calendar_id": "a", **period}),
            Call(tool="find_free_slots", arguments={"calendar_id": "a", **period}),
            Call(tool="book_slot", arguments={"calendar_id": "a", **period, "summary": "Tea"}),
            Call(tool="check_availability", arguments={"calendar_id": "a", **period}),
            Call(tool="get_availability", arguments=period),
            Call(tool="query_public_availability", arguments={"slug": "zoe", "date": "2026-03-01"}),
            Call(tool="request_booking", arguments=booking),
            Call(tool="resolve_contact", arguments={"email": "zoe@example.com"}, varied=True),
            Call(tool="resolve_identity", arguments={"identity": "zoe@example.com"}),
            Call(tool="search_contacts", arguments={"query": "zoe"}),
            Call(tool="compose_proposal", arguments=proposal, varied=True),
        ],
    )
