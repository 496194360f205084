"""The servers to compare, and the calls of each: every tool, as the server's own documentation shows it."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path

from comparing import Call, Server

PYTHON_PROGRAMS = Path(sys.prefix) / "bin"
NODE_PROGRAMS = Path(sys.prefix) / "node/node_modules/.bin"
# The first is Debian's name.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
# More bytes than a result may have by default; as base64, they are a third more.
LARGE = 1_500_000
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
CLOCK = {"times of day": (TIME, "<time>")}


def browser() -> str:
    """Return the path of a browser for the two browser servers, or an empty text if there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), "")


def servers(work: Path, site: str) -> list[Server]:
    """Return the servers, which run in a directory. ``site`` is the address of a site that three of them visit."""
    without_browser = [
        _everything(work),
        _filesystem(work),
        _memory(work),
        _sequential_thinking(),
        _desktop_commander(work),
        _time(),
        _git(work),
        _fetch(site),
        _excel(work),
        _motherduck(),
    ]
    return [*without_browser, _playwright(work, site, browser()), _chrome_devtools(work, site, browser())]


def _node(name: str) -> str:
    return str(NODE_PROGRAMS / name)


def _python(name: str) -> str:
    return str(PYTHON_PROGRAMS / name)


def _everything(work: Path) -> Server:
    data = "data:text/plain;base64," + base64.b64encode(b"to be compressed").decode()
    calls = [
        Call(tool="echo", arguments={"message": "Hello, wörld ✓"}, varied=True),
        *(
            Call(tool="get-annotated-message", arguments={"messageType": kind, "includeImage": True})
            for kind in ("error", "success", "debug")
        ),
        Call(tool="get-annotated-message", arguments={"messageType": "debug"}, varied=True),
        Call(tool="get-env", differs="a process that Toolbelt runs has another environment"),
        Call(tool="get-resource-links", arguments={"count": 2}, varied=True),
        Call(tool="get-resource-reference", arguments={"resourceType": "Text", "resourceId": 1}, varied=True),
        Call(
            tool="get-resource-reference",
            arguments={"resourceType": "Blob", "resourceId": 2},
            differs="the blob contains the time",
        ),
        Call(tool="get-structured-content", arguments={"location": "New York"}, varied=True),
        Call(tool="get-sum", arguments={"a": 2, "b": 3.5}, varied=True),
        Call(tool="get-tiny-image", varied=True),
        Call(
            tool="gzip-file-as-resource", arguments={"name": "a.gz", "data": data, "outputType": "resource"}
        ),
        Call(tool="gzip-file-as-resource", arguments={"name": "a.gz", "data": data}),
        Call(tool="trigger-long-running-operation", arguments={"duration": 0.2, "steps": 2}),
        Call(tool="toggle-simulated-logging"),
        Call(tool="toggle-simulated-logging"),
        Call(tool="toggle-subscriber-updates"),
        Call(tool="toggle-subscriber-updates"),
    ]
    return Server(
        name="everything",
        package="@modelcontextprotocol/server-everything",
        command=[_node("mcp-server-everything")],
        calls=calls,
        normalised={
            **CLOCK,
            "times of day in words": (r"\d{1,2}:\d\d:\d\d\u202f?\s?[AP]M", "<time>"),
            "ids of sessions": (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<session>"),
        },
        unlisted={"simulate-research-query": "runs as a task only (execution.taskSupport is required)"},
    )


def _filesystem(work: Path) -> Server:
    def path(name: str) -> dict[str, str]:
        return {"path": str(work / name)}

    edits, more = [{"oldText": "two", "newText": "zwei"}], [{"oldText": "three", "newText": "drei"}]
    calls = [
        Call(tool="list_allowed_directories", varied=True),
        Call(tool="read_file", arguments=path("a.txt"), varied=True),
        Call(tool="read_text_file", arguments={**path("a.txt"), "head": 1}, varied=True),
        Call(tool="read_text_file", arguments={**path("a.txt"), "tail": 2}),
        Call(tool="read_text_file", arguments=path("none.txt")),
        Call(tool="read_media_file", arguments=path("dot.png"), varied=True),
        Call(
            tool="read_multiple_files",
            arguments={"paths": [str(work / "a.txt"), str(work / "no")]},
            varied=True,
        ),
        Call(tool="write_file", arguments={**path("b.txt"), "content": "ünïcode ✓ 𝄞\n"}),
        Call(tool="edit_file", arguments={**path("a.txt"), "edits": edits, "dryRun": True}, varied=True),
        Call(tool="edit_file", arguments={**path("a.txt"), "edits": more}),
        Call(tool="create_directory", arguments=path("made/inner")),
        Call(tool="list_directory", arguments=path("."), varied=True),
        Call(tool="list_directory_with_sizes", arguments={**path("."), "sortBy": "size"}, varied=True),
        Call(tool="directory_tree", arguments={**path("."), "excludePatterns": ["*.png"]}, varied=True),
        Call(tool="move_file", arguments={"source": str(work / "b.txt"), "destination": str(work / "c.txt")}),
        Call(tool="search_files", arguments={**path("."), "pattern": "**/*.txt"}, varied=True),
        Call(tool="get_file_info", arguments=path("a.txt"), varied=True),
        Call(tool="read_text_file", arguments={"path": "/etc/hostname"}),
    ]
    return Server(
        name="filesystem",
        package="@modelcontextprotocol/server-filesystem",
        command=[_node("mcp-server-filesystem"), str(work)],
        files={"a.txt": "one\ntwo\nthree\n", "dot.png": PNG},
        calls=calls,
        normalised={"times of files": (r"\w{3} \w{3} \d\d \d{4} [\d:]+ GMT[^\"\\]*", "<time>")},
    )


def _memory(work: Path) -> Server:
    def relation(kind: str) -> dict[str, str]:
        return {"from": "John_Smith", "to": "Anthropic", "relationType": kind}

    entity = {"name": "John_Smith", "entityType": "person", "observations": ["Speaks fluent Spanish"]}
    company = {"name": "Anthropic", "entityType": "organization", "observations": []}
    addition = {"entityName": "John_Smith", "contents": ["Speaks fluent Spanish", "Graduated in 2019"]}
    deletion = {"entityName": "John_Smith", "observations": ["Graduated in 2019"]}
    calls = [
        Call(tool="create_entities", arguments={"entities": [entity, company]}),
        Call(tool="create_relations", arguments={"relations": [relation("works_at")]}),
        Call(tool="add_observations", arguments={"observations": [addition]}),
        Call(
            tool="add_observations", arguments={"observations": [{"entityName": "nobody", "contents": ["x"]}]}
        ),
        Call(tool="read_graph", varied=True),
        Call(tool="search_nodes", arguments={"query": "spanish"}, varied=True),
        Call(tool="open_nodes", arguments={"names": ["John_Smith", "Anthropic"]}, varied=True),
        Call(tool="delete_observations", arguments={"deletions": [deletion]}),
        Call(tool="delete_relations", arguments={"relations": [relation("works_at")]}),
        Call(tool="delete_entities", arguments={"entityNames": ["Anthropic"]}),
        Call(tool="read_graph"),
    ]
    return Server(
        name="memory",
        package="@modelcontextprotocol/server-memory",
        command=[_node("mcp-server-memory")],
        env={"MEMORY_FILE_PATH": str(work / "memory.jsonl")},
        calls=calls,
    )


def _sequential_thinking() -> Server:
    first = {"thought": "Let us see.", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 3}
    calls = [
        Call(tool="sequentialthinking", arguments=first),
        Call(
            tool="sequentialthinking",
            arguments={**first, "thoughtNumber": 2, "isRevision": True, "revisesThought": 1},
        ),
        Call(tool="sequentialthinking", arguments={**first, "nextThoughtNeeded": "true"}),
        Call(tool="sequentialthinking", arguments={**first, "branchFromThought": 1, "branchId": "b"}),
        Call(tool="sequentialthinking", arguments={**first, "thoughtNumber": 3, "nextThoughtNeeded": False}),
        Call(tool="sequentialthinking", arguments={**first, "thoughtNumber": "3"}),
        Call(tool="sequentialthinking", arguments={**first, "thoughtNumber": 0}),
        Call(tool="sequentialthinking", arguments={**first, "needsMoreThoughts": None}),
        Call(tool="sequentialthinking", arguments={"thought": "Alone."}),
    ]
    return Server(
        name="sequential-thinking",
        package="@modelcontextprotocol/server-sequential-thinking",
        command=[_node("mcp-server-sequential-thinking")],
        calls=calls,
    )


def _desktop_commander(work: Path) -> Server:
    def path(name: str) -> dict[str, str]:
        return {"path": str(work / name)}

    settings = {
        "allowedDirectories": [str(work)],
        "blockedCommands": ["sudo"],
        "defaultShell": "/bin/sh",
        "fileReadLineLimit": 1000,
        "fileWriteLineLimit": 50,
        "telemetryEnabled": False,
        "clientId": "00000000-0000-4000-8000-000000000000",
    }
    counts = "the server counts the calls that it receives, and Toolbelt rejects some calls"
    block = {"file_path": str(work / "a.txt"), "old_string": "two", "new_string": "zwei"}
    python = f"{sys.executable} -i -q"
    calls = [
        Call(tool="set_config_value", arguments={"key": "fileReadLineLimit", "value": 500}, differs=counts),
        Call(tool="get_config", differs="the result contains the client and the number of calls"),
        Call(tool="write_file", arguments={**path("b.txt"), "content": "ünïcode ✓ 𝄞\n", "mode": "rewrite"}),
        Call(tool="write_file", arguments={**path("b.txt"), "content": "more\n", "mode": "append"}),
        Call(tool="read_file", arguments={**path("b.txt"), "offset": 0, "length": 10}, varied=True),
        Call(tool="read_file", arguments=path("dot.png")),
        Call(tool="read_file", arguments=path("large.png")),
        Call(
            tool="read_multiple_files",
            arguments={"paths": [str(work / "a.txt"), str(work / "no")]},
            varied=True,
        ),
        Call(tool="write_pdf", arguments={**path("a.pdf"), "content": "# Title"}),
        Call(tool="create_directory", arguments=path("made")),
        Call(tool="list_directory", arguments={**path("made"), "depth": 1}, varied=True),
        Call(tool="move_file", arguments={"source": str(work / "b.txt"), "destination": str(work / "c.txt")}),
        Call(tool="get_file_info", arguments=path("a.txt"), varied=True),
        Call(tool="edit_block", arguments=block),
        Call(
            tool="start_search",
            arguments={**path("."), "pattern": "a.txt", "searchType": "files"},
            captures={"search": r"(search_\d+_\d+)"},
        ),
        Call(
            tool="get_more_search_results",
            arguments={"sessionId": "{search}"},
            until="Status: COMPLETED",
        ),
        Call(tool="list_searches"),
        Call(tool="stop_search", arguments={"sessionId": "{search}"}),
        Call(
            tool="start_process",
            arguments={"command": python, "timeout_ms": 3000},
            captures={"pid": r"PID (\d+)"},
        ),
        Call(tool="interact_with_process", arguments={"pid": "{int:pid}", "input": "print(6 * 7)"}),
        Call(tool="read_process_output", arguments={"pid": "{int:pid}", "timeout_ms": 300}),
        Call(tool="list_sessions"),
        Call(tool="force_terminate", arguments={"pid": "{int:pid}"}),
        Call(tool="list_processes", differs="the processes of the machine have changed by then"),
        Call(tool="kill_process", arguments={"pid": 99999999}),
        Call(tool="get_usage_stats", differs=counts),
        Call(
            tool="get_recent_tool_calls",
            arguments={"maxResults": 1, "toolName": "create_directory"},
            differs=counts,
        ),
        Call(tool="get_prompts", arguments={"action": "get_prompt", "promptId": "onb2_01"}, varied=True),
        Call(tool="give_feedback_to_desktop_commander", differs=counts),
    ]
    return Server(
        name="desktop-commander",
        package="@wonderwhy-er/desktop-commander",
        command=[_node("desktop-commander")],
        env={
            "HOME": str(work),
            "DESKTOP_COMMANDER_DISABLE_TELEMETRY": "1",
            "DC_FLAG_URL": "http://127.0.0.1:9/",
        },
        files={
            "a.txt": "one\ntwo\nthree\n",
            "dot.png": PNG,
            "large.png": PNG + bytes(LARGE),
            ".claude-server-commander/config.json": json.dumps(settings),
        },
        options=["--result-bytes", str(2 * LARGE)],
        calls=calls,
        normalised={
            **CLOCK,
            "process and time in Chromium's messages": (r"\[\d+:\d+:\d{4}/[\d.]+:", "[<process and time>:"),
            "times of files": (r"\w{3} \w{3} \d\d \d{4} [\d:]+ GMT[^\"\\]*", "<time>"),
            "durations in seconds": (r"\b\d+(\.\d+)?(?=(ms|s)\b)", "<seconds>"),
        },
    )


def _time() -> Server:
    conversion = {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Asia/Tokyo"}
    calls = [
        Call(tool="get_current_time", arguments={"timezone": "Europe/Warsaw"}, varied=True),
        Call(tool="convert_time", arguments=conversion, varied=True),
        Call(tool="convert_time", arguments={**conversion, "time": "25:00"}),
        Call(tool="get_current_time", arguments={"timezone": "Nowhere/None"}),
    ]
    return Server(
        name="time",
        package="mcp-server-time",
        command=[_python("mcp-server-time"), "--local-timezone", "UTC"],
        calls=calls,
        normalised=CLOCK,
    )


def _git(work: Path) -> Server:
    repo = str(work)
    git = ["git", "-C", repo, "-c", "user.name=Interop", "-c", "user.email=interop@example.com"]
    dates = {"GIT_AUTHOR_DATE": "1767323045 +0000", "GIT_COMMITTER_DATE": "1767323045 +0000"}
    identity = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Interop"), ("EMAIL", "interop@example.com"))
    }

    def call(tool: str, *, varied: bool = False, **arguments: object) -> Call:
        return Call(tool=tool, arguments={"repo_path": repo, **arguments}, varied=varied)

    calls = [
        call("git_status", varied=True),
        call("git_diff_unstaged", context_lines=1, varied=True),
        call("git_add", files=["a.txt"]),
        call("git_diff_staged", varied=True),
        call("git_reset"),
        call("git_add", files=["a.txt", "b.txt"]),
        call("git_commit", message="Say two, ünïcode ✓"),
        call("git_log", max_count=5, varied=True),
        call("git_log", start_timestamp="2026-01-01", end_timestamp=None),
        call("git_create_branch", branch_name="other", base_branch=None),
        call("git_branch", branch_type="local", varied=True),
        call("git_checkout", branch_name="other"),
        call("git_diff", target="HEAD~1", varied=True),
        call("git_show", revision="HEAD", varied=True),
        call("git_show", revision="none"),
        call("git_commit", message="Nothing"),
        Call(tool="git_status", arguments={"repo_path": "/"}),
    ]
    return Server(
        name="git",
        package="mcp-server-git",
        command=[_python("mcp-server-git"), "--repository", repo],
        env={**dates, **identity},
        files={"a.txt": "one\n"},
        setup=[
            ["git", "init", "--quiet", "--initial-branch=main", repo],
            [*git, "add", "."],
            ["env", *(f"{k}={v}" for k, v in dates.items()), *git, "commit", "--quiet", "--message=One"],
            ["sh", "-c", "echo two >> a.txt; echo b > b.txt"],
        ],
        calls=calls,
    )


def _fetch(site: str) -> Server:
    calls = [
        Call(tool="fetch", arguments={"url": f"{site}/", "max_length": 200}, varied=True),
        Call(tool="fetch", arguments={"url": f"{site}/", "raw": True, "start_index": 10}),
        Call(tool="fetch", arguments={"url": f"{site}/none"}),
        Call(tool="fetch", arguments={"url": "not an address"}),
        Call(tool="fetch", arguments={"url": f"{site}/", "max_length": 0}),
    ]
    return Server(
        name="fetch",
        package="mcp-server-fetch",
        command=[_python("mcp-server-fetch"), "--allow-private-ips"],
        # If it finds npm, the server downloads a program that extracts articles on its first call.
        env={"PATH": str(PYTHON_PROGRAMS)},
        calls=calls,
    )


def _motherduck() -> Server:
    calls = [
        Call(tool="execute_query", arguments={"sql": "CREATE TABLE t (a INTEGER, b VARCHAR)"}),
        Call(tool="execute_query", arguments={"sql": "INSERT INTO t VALUES (1, 'ünï ✓'), (NULL, NULL)"}),
        Call(
            tool="execute_query",
            arguments={"sql": "SELECT *, 10::HUGEINT**30 AS c, 0.5 AS d FROM t"},
            varied=True,
        ),
        Call(tool="execute_query", arguments={"sql": "SELECT nothing"}),
        Call(tool="list_databases", varied=True),
        Call(tool="list_tables", varied=True),
        Call(tool="list_tables", arguments={"database": "memory", "schema": None}, varied=True),
        Call(tool="list_columns", arguments={"table": "t"}, varied=True),
    ]
    return Server(
        name="motherduck",
        package="mcp-server-motherduck",
        command=[_python("mcp-server-motherduck"), "--db-path", ":memory:", "--read-write"],
        calls=calls,
    )


def _excel(work: Path) -> Server:
    def call(tool: str, *, varied: bool = False, **arguments: object) -> Call:
        return Call(tool=tool, arguments={"path": "a.xlsx", **arguments}, varied=varied)

    def on(tool: str, *, varied: bool = False, **arguments: object) -> Call:
        return call(tool, varied=varied, sheet="Data", **arguments)

    rows = [
        ["Fruit", "Units", "Price"],
        ["Äpfel ✓", 3, 1.5],
        ["Pears", 5, 2],
        ["Plums", 7, None],
        ["Pears", 5, 2],
    ]
    rule = {"type": "list", "options": ["Pears", "Plums"]}
    calls = [
        call("create_workbook", sheets=["Data", "More"]),
        call("create_workbook"),
        Call(tool="list_workbooks", varied=True),
        on("write_range", at="A1", rows=rows),
        on("write_range", at="D1", rows=[["Total"], ["=B2*C2"], ["=B3*C3"]]),
        on("read_range", range="A1:D3", varied=True),
        on("read_range", range="A1:D3", mode="formulas"),
        call("describe_workbook", varied=True),
        on("describe_sheet", varied=True),
        call("set_workbook_settings", settings={"doc_properties": {"title": "Fruit"}}),
        call("import_csv", csv_path="in.csv", sheet="Csv"),
        on("export_csv", csv_path="out.csv", range="A1:C3"),
        call("create_sheet", new_name="New"),
        call("rename_sheet", sheet="New", new_name="Newer"),
        call("copy_sheet", sheet="Newer", new_name="Copy"),
        call("delete_sheet", sheet="Copy"),
        on("insert_rows_or_columns", axis="rows", start=10, count=2),
        on("delete_rows_or_columns", axis="rows", start=10),
        on("copy_range", range="A1:C5", at="F1"),
        on("sort_range", range="F1:H5", sort_by=[{"column": "Units", "order": "descending"}]),
        on("transform_range", range="F1:H5", transform={"operation": "remove_duplicates"}),
        on("clear_range", range="F1:H5"),
        call("find_cells", query="Pears", varied=True),
        call("replace_cells", query="Plums", replacement="Damsons"),
        on("trace_formula", range="D2", direction="precedents", varied=True),
        on("goal_seek", cell="D2", target=9, changing_cell="C2"),
        on("format_range", range="A1:D1", style={"bold": True, "fill_color": "#1F4E78"}),
        on("merge_cells", range="J1:K1"),
        on("set_sheet_layout", layout={"freeze_panes": "A2"}),
        on(
            "add_conditional_format", range="B2:B5", rule={"type": "top", "count": 1, "fill_color": "#FFFF00"}
        ),
        on("add_data_validation", range="A2:A5", rule=rule),
        on("set_table", name="Fruits", range="A1:D5"),
        on("create_chart", chart_type="column", at="M1", source="A1:B5"),
        on("delete_chart", name="Chart 1"),
        on("add_sparklines", range="E2:E3", source="Data!B2:C3"),
        on("delete_sparklines", range="E2:E3"),
        call(
            "create_pivot_table",
            sheet="More",
            at="A1",
            source="Data!A1:C5",
            row_fields=["Fruit"],
            value_fields=[{"field": "Units"}],
        ),
        call(
            "add_slicer",
            sheet="Data",
            target={"sheet": "Data", "name": "Fruits"},
            field="Fruit",
            at="P1",
            name="Slice",
        ),
        on("delete_slicer", name="Slice"),
        call("delete_pivot_table", sheet="More", name="PivotTable1"),
        call("set_defined_name", name="TaxRate", refers_to="0.075"),
        call("delete_defined_name", name="TaxRate"),
        on("set_note", cell="A1", text="A note."),
        on("delete_note", cell="A1"),
        on("insert_image", image_path="dot.png", at="T1"),
        on("delete_image", name="Picture 1"),
        call("read_vba", varied=True),
        Call(tool="import_workbook", arguments={"path": "b.xlsx", "content_base64": "bm8="}),
        call("export_workbook"),
    ]
    return Server(
        name="excel",
        package="excel-mcp-server",
        command=[_python("excel-mcp-server"), "stdio"],
        env={"EXCEL_FILES_PATH": str(work)},
        files={"in.csv": "a;b\n1;2\n", "dot.png": PNG},
        calls=calls,
        normalised={
            **CLOCK,
            "a workbook contains the time at which it was written": (
                r'"blob": "UEsD[^"]*"',
                '"blob": "<workbook>"',
            ),
            "so its size differs": (r'(a\.xlsx\\?": ?)\d+', r"\1<size>"),
        },
    )


def _playwright(work: Path, site: str, browser: str) -> Server:
    calls = [
        Call(tool="browser_navigate", arguments={"url": f"{site}/"}),
        Call(tool="browser_snapshot", varied=True),
        Call(tool="browser_resize", arguments={"width": 800, "height": 600}),
        Call(tool="browser_console_messages", arguments={"level": "info"}, varied=True),
        Call(tool="browser_find", arguments={"text": "page to act"}, varied=True),
        Call(tool="browser_emulate_media", arguments={"colorScheme": "dark", "media": None}),
        Call(tool="browser_evaluate", arguments={"function": "() => document.title + ' ✓'"}, varied=True),
        Call(tool="browser_type", arguments={"element": "Name", "target": "#name", "text": "Zoë"}),
        Call(
            tool="browser_fill_form",
            arguments={
                "fields": [
                    {"target": "#agree", "name": "Agree", "type": "checkbox", "value": "true"},
                    {"target": "#name", "name": "Name", "type": "textbox", "value": "Ann"},
                ]
            },
        ),
        Call(tool="browser_press_key", arguments={"key": "ArrowLeft"}),
        Call(tool="browser_select_option", arguments={"target": "#colour", "values": ["green"]}),
        Call(tool="browser_hover", arguments={"target": "#press"}),
        Call(tool="browser_click", arguments={"target": "#press", "element": "Press"}),
        Call(tool="browser_drag", arguments={"startTarget": "#one", "endTarget": "#two"}),
        Call(tool="browser_drop", arguments={"target": "#two", "data": {"text/plain": "dropped"}}),
        Call(tool="browser_wait_for", arguments={"text": "Pressed."}),
        Call(tool="browser_network_requests", arguments={"static": True}, varied=True),
        Call(tool="browser_network_request", arguments={"index": 1, "part": "request-body"}),
        Call(tool="browser_run_code_unsafe", arguments={"code": "async (page) => await page.title()"}),
        Call(tool="browser_take_screenshot", arguments={"type": "png", "scale": "css"}),
        Call(tool="browser_click", arguments={"target": "#ask"}),
        Call(tool="browser_handle_dialog", arguments={"accept": True}),
        Call(tool="browser_click", arguments={"target": "#file"}),
        Call(tool="browser_file_upload", arguments={"paths": [str(work / "a.txt")]}),
        Call(tool="browser_navigate", arguments={"url": f"{site}/other.html"}),
        Call(tool="browser_navigate_back"),
        Call(tool="browser_tabs", arguments={"action": "list"}, varied=True),
        Call(tool="browser_click", arguments={"target": "#nothing"}),
        Call(tool="browser_close"),
    ]
    command = [
        _node("playwright-mcp"),
        "--executable-path",
        browser,
        "--headless",
        "--no-sandbox",
        "--isolated",
    ]
    return Server(
        name="playwright",
        package="@playwright/mcp",
        command=[*command, "--output-dir", str(work / "out"), "--timeout-action", "2000"],
        files={"a.txt": "one\n"},
        calls=calls,
        normalised={
            "times in the names of files": (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z", "<time>"),
            "durations in milliseconds": (r"\b\d+(?=ms\b)", "<ms>"),
        },
    )


def _chrome_devtools(work: Path, site: str, browser: str) -> Server:
    def on(tool: str, *, varied: bool = False, differs: str = "", **arguments: object) -> Call:
        return Call(tool=tool, arguments={"pageId": 1, **arguments}, varied=varied, differs=differs)

    measured = "the result contains measured times"
    calls = [
        Call(tool="list_pages", varied=True),
        on("navigate_page", type="url", url=f"{site}/"),
        Call(
            tool="take_snapshot",
            arguments={"pageId": 1},
            captures={
                "name": r'uid=(\w+) textbox \\"Name',
                "agree": r'uid=(\w+) checkbox \\"Agree',
                "press": r'uid=(\w+) button \\"Press',
                "ask": r'uid=(\w+) button \\"Ask',
                "link": r'uid=(\w+) link \\"Other',
                "file": r'uid=(\w+) button \\"File',
            },
        ),
        on("take_snapshot", verbose=True),
        on("evaluate_script", function="() => document.title + ' ✓'", varied=True),
        on("fill", uid="{name}", value="Zoë"),
        on("fill_form", elements=[{"uid": "{name}", "value": "Ann"}, {"uid": "{agree}", "value": "true"}]),
        on("hover", uid="{press}"),
        on("click", uid="{press}", includeSnapshot=True),
        on("wait_for", text=["Pressed."]),
        on("click", uid="{name}"),
        on("type_text", text="more"),
        on("press_key", key="Tab"),
        on("drag", from_uid="{press}", to_uid="{ask}"),
        on("upload_file", uid="{file}", filePaths=[str(work / "a.txt")]),
        on("get_css_styles", uid="{press}"),
        on("list_console_messages", varied=True),
        on("get_console_message", msgid=1),
        on("list_network_requests", varied=True),
        on("get_network_request", reqid=1),
        on("emulate", colorScheme="dark", networkConditions="Slow 3G"),
        on("emulate", colorScheme="auto"),
        on("resize_page", width=800, height=600),
        on("take_screenshot", format="png"),
        on("take_heapsnapshot", filePath=str(work / "a.heapsnapshot")),
        on("screencast_start", filePath=str(work / "a.mp4")),
        on("screencast_stop"),
        on("performance_start_trace", reload=False, autoStop=False, differs=measured),
        on("performance_stop_trace", differs=measured),
        on(
            "performance_analyze_insight",
            insightSetId="NAVIGATION_0",
            insightName="LCPBreakdown",
            differs=measured,
        ),
        on("lighthouse_audit", mode="snapshot", outputDirPath=str(work), differs=measured),
        on("evaluate_script", function="() => { setTimeout(() => confirm('Sure?'), 0) }"),
        on("handle_dialog", action="accept"),
        Call(tool="new_page", arguments={"url": f"{site}/other.html"}),
        on("select_page", bringToFront=True),
        Call(tool="close_page", arguments={"pageId": 2}),
        on("click", uid="none"),
    ]
    command = [_node("chrome-devtools-mcp"), "--executablePath", browser, "--headless", "--isolated"]
    command += ["--no-usage-statistics", "--no-performance-crux", "--chromeArg=--no-sandbox"]
    return Server(
        name="chrome-devtools",
        package="chrome-devtools-mcp",
        command=command,
        env={"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1"},
        files={"a.txt": "one\n"},
        calls=calls,
        normalised={"times of day": (r"\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT", "<time>")},
    )
