"""The calls of a server, made directly and through Toolbelt, and the byte-for-byte comparison of their results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

# The fields of a result that come from the tool. The others are the protocol's.
COMPARED = ("content", "structuredContent", "isError", "_meta")
# What Toolbelt adds to the result of a call that failed.
REFUSAL = "toolbelt/refusal"
# Longer than anything here takes, on a machine that does much else.
SECONDS_TO_COMPLETE = 60

# The outcomes of a call, as the table counts them.
EQUAL = "byte-equal"
REFUSED_BOTH_WAYS = "refused both ways"
REFUSED_BY_TOOLBELT = "refused by Toolbelt only"
BY_DESIGN = "different by design"
DIFFERENT = "DIFFERENT"


class Side(Protocol):
    """A side of the comparison."""

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is made on both sides.

    ``captures`` are patterns with one group, by name: later calls use the captured text of their side as ``{name}``.
    ``varied``: the call only reads, so it is repeated with arguments that the schema does not expect. ``differs``
    is the reason why the two results are meant to differ. ``of_screen``: the server's screen makes the call, with the
    server's own name for the tool. The call is repeated until its result contains ``until``, because what it asks for
    takes its time.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    captures: Mapping[str, str] = field(default_factory=dict)
    varied: bool = False
    differs: str = ""
    of_screen: bool = False
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is run twice, each time in a new directory with the same path.

    ``normalised`` describes what differs between runs: a pattern in the result's canonical JSON, and its replacement.
    ``unlisted`` are tools that Toolbelt does not offer, with the reason. ``varying`` are tools whose description
    differs between processes of the server. ``prompts`` are requested with these arguments, and ``uris`` are read in
    addition to the listed resources. ``options`` are options of ``mcp add``, such as the server's own limits.
    """

    name: str
    package: str
    command: Sequence[str]
    calls: Sequence[Call]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    setup: Sequence[Sequence[str]] = ()
    normalised: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unlisted: Mapping[str, str] = field(default_factory=dict)
    varying: Sequence[str] = ()
    prompts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    uris: Sequence[str] = ()
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a call: the tool, its arguments, the verdict, and the two results."""

    tool: str
    variant: str
    arguments: Mapping[str, Any]
    verdict: str
    direct: str
    through: str


def script(server: Server, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Call, str]]:
    """Yield the calls in order, each followed by its variants with their names if it may be varied."""
    for call in server.calls:
        yield call, ""
        if call.varied:
            for name, arguments in variants(tools[call.tool]["inputSchema"], call.arguments):
                yield Call(tool=call.tool, arguments=arguments, of_screen=call.of_screen), name


def results(
    side: Side, server: Server, tools: Mapping[str, Mapping[str, Any]], *, prefix: str = ""
) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Make all calls of a server on one side; return the responses, each with the texts captured until then."""
    captured: dict[str, str] = {}
    responses = []
    for call, _ in script(server, tools):
        name = call.tool if call.of_screen else f"{prefix}{call.tool}"
        params = {"name": name, "arguments": _fill_in(call.arguments, captured)}
        end = time.monotonic() + SECONDS_TO_COMPLETE
        while True:
            response = side.request("tools/call", params)
            text = json.dumps(response.get("result"), ensure_ascii=False)
            if call.until in text or time.monotonic() > end:
                break
            time.sleep(0.1)
        for name, pattern in call.captures.items():
            match = re.search(pattern, text)
            assert match, f"{server.name}: {call.tool} has no {name} in its result: {text[:600]}"
            captured[name] = match[1]
        responses.append((response, dict(captured)))
    return responses


def compare(
    server: Server,
    tools: Mapping[str, Mapping[str, Any]],
    direct: Sequence[tuple[dict[str, Any], dict[str, str]]],
    through: Sequence[tuple[dict[str, Any], dict[str, str]]],
    prefix: str,
) -> list[Outcome]:
    """Compare the responses of the two sides, call by call."""
    outcomes = []
    for (call, variant), left, right in zip(script(server, tools), direct, through, strict=True):
        direct_text, through_text = (_canonical(server, *side) for side in (left, right))
        outcomes.append(
            Outcome(
                tool=call.tool,
                variant=variant,
                arguments=call.arguments,
                verdict=_verdict(call, left[0], right[0], direct_text, through_text.replace(prefix, "")),
                direct=direct_text,
                through=through_text,
            )
        )
    return outcomes


def _verdict(
    call: Call, direct: Mapping[str, Any], through: Mapping[str, Any], direct_text: str, through_text: str
) -> str:
    if call.differs and _has_failed(direct) == _has_failed(through):
        return BY_DESIGN
    refusal = through.get("result", {}).get("_meta", {}).get(REFUSAL, {}).get("code", "")
    if refusal == "invalid-arguments":
        return REFUSED_BOTH_WAYS if _has_failed(direct) else REFUSED_BY_TOOLBELT
    return EQUAL if direct_text == through_text else DIFFERENT


def _has_failed(response: Mapping[str, Any]) -> bool:
    return "error" in response or response["result"].get("isError", False)


def _canonical(server: Server, response: Mapping[str, Any], captured: Mapping[str, str]) -> str:
    """Return the compared part of a response as canonical JSON, with placeholders for what differs between runs."""
    whole = response.get("result", {})
    if "error" in response:
        # By design, a server's error is a result that the model reads.
        whole = {"content": [{"type": "text", "text": response["error"]["message"]}], "isError": True}
    result = {name: whole[name] for name in COMPARED if name in whole}
    if "_meta" in result:
        result["_meta"] = {key: value for key, value in result["_meta"].items() if key != REFUSAL}
        if not result["_meta"]:
            del result["_meta"]
    # According to MCP, an absent isError is false.
    result.setdefault("isError", False)
    text = json.dumps(result, sort_keys=True, ensure_ascii=False)
    for name, value in captured.items():
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"<{name}>", text)
    for pattern, replacement in server.normalised.values():
        text = re.sub(pattern, replacement, text)
    return text


def _fill_in(value: Any, captured: Mapping[str, str]) -> Any:
    match value:
        case str() if value.startswith("{int:"):
            return int(captured[value[5:-1]])
        case str():
            return re.sub(r"\{([a-z_]+)\}", lambda match: captured.get(match[1], match[0]), value)
        case Mapping():
            return {key: _fill_in(inner, captured) for key, inner in value.items()}
        case list():
            return [_fill_in(inner, captured) for inner in value]
    return value


def variants(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield variants of the arguments that differ in one respect, each with a name, once for each kind."""
    required, properties = set(schema.get("required", ())), schema.get("properties", {})
    yield "an unknown name", {**arguments, "not_known": 1}
    if optional := sorted(arguments.keys() - required):
        yield (
            "without optional fields",
            {name: arguments[name] for name in arguments if name not in optional},
        )
    if needed := sorted(arguments.keys() & required):
        yield "without a required field", {name: arguments[name] for name in arguments if name != needed[0]}
    for name in sorted(properties.keys() - required):
        yield "null for an optional field", {**arguments, name: None}
        break
    for name, field_schema in sorted(properties.items()):
        if name in required and "default" in field_schema:
            yield (
                "without a required field that has a default",
                {k: v for k, v in arguments.items() if k != name},
            )
            break
    kinds = (
        ("integer", lambda field_schema: field_schema.get("type") == "integer", ("3", 3.0, 3.5, 10**30)),
        ("number", lambda field_schema: field_schema.get("type") == "number", ("3", 3.0, 10**30)),
        ("boolean", lambda field_schema: field_schema.get("type") == "boolean", ("true", "false", 1)),
        (
            "text",
            lambda field_schema: field_schema.get("type") == "string" and "enum" not in field_schema,
            (3, True),
        ),
        ("list", lambda field_schema: field_schema.get("type") == "array", ("one", '["one"]')),
        ("enumeration", lambda field_schema: "enum" in field_schema, None),
    )
    for kind, matches, values in kinds:
        name = next((name for name, field_schema in sorted(properties.items()) if matches(field_schema)), "")
        if not name:
            continue
        for value in values or (str(properties[name]["enum"][0]).swapcase(),):
            yield f"{json.dumps(value)[:12]} for {kind}", {**arguments, name: value}
    if name := next((name for name in sorted(arguments) if isinstance(arguments[name], str)), ""):
        yield "unicode in a text", {**arguments, name: f"{arguments[name]}\u202e ü✓𝄞\u0000"}


def prepare(server: Server, work: Path) -> None:
    """Write the initial files of a server into a new directory."""
    for name, content in server.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
