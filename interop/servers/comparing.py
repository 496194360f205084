"""One server's calls, made directly and through Toolbelt, and the two results of each compared byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

# What a result says to the client of a tool. The rest is the protocol's own.
COMPARED = ("content", "structuredContent", "isError", "_meta")
# What Toolbelt adds to the result of a call that failed.
REFUSAL = "toolbelt/refusal"

# What became of a call, as the table counts it.
EQUAL = "byte-equal"
BOTH_REFUSE = "refused both ways"
GATE = "refused by Toolbelt only"
BY_DESIGN = "different by design"
WRONG = "DIFFERENT"


class Asked(Protocol):
    """A side of the comparison."""

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is made on both sides.

    ``keep`` names parts of the result, by patterns with one group, which later calls take as ``{name}``: each side its
    own. ``varied``: the call only reads, so that it is made again with arguments that the schema does not foresee.
    ``differs`` says why the two results are not the same, where that is meant.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    varied: bool = False
    differs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is run twice, each time in a new directory at the same place.

    ``normalised`` names what no two runs have in common: a pattern in the result's canonical JSON, and what stands for
    it. ``unlisted`` are tools that Toolbelt does not offer, with the reason.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one call: which tool, with what, and the two results."""

    tool: str
    variant: str
    arguments: Mapping[str, Any]
    what: str
    direct: str
    through: str


def script(server: Server, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Call, str]]:
    """Yield the calls in their order, and behind each one that may be varied its variants with their names."""
    for call in server.calls:
        yield call, ""
        if call.varied:
            for name, arguments in variants(tools[call.tool]["inputSchema"], call.arguments):
                yield Call(tool=call.tool, arguments=arguments), name


def results(
    side: Asked, server: Server, tools: Mapping[str, Mapping[str, Any]], *, prefix: str = ""
) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Make all calls of a server on one side; return the responses, each with what was kept until then."""
    kept: dict[str, str] = {}
    found = []
    for call, _ in script(server, tools):
        params = {"name": f"{prefix}{call.tool}", "arguments": _with(call.arguments, kept)}
        response = side.ask("tools/call", params)
        text = json.dumps(response.get("result"), ensure_ascii=False)
        for name, pattern in call.keep.items():
            match = re.search(pattern, text)
            assert match, f"{server.name}: {call.tool} answers without {name}: {text[:600]}"
            kept[name] = match[1]
        found.append((response, dict(kept)))
    return found


def compared(
    server: Server,
    tools: Mapping[str, Mapping[str, Any]],
    direct: Sequence[tuple[dict[str, Any], dict[str, str]]],
    through: Sequence[tuple[dict[str, Any], dict[str, str]]],
    prefix: str,
) -> list[Outcome]:
    """Compare the responses of the two sides, call by call."""
    outcomes = []
    for (call, variant), one, other in zip(script(server, tools), direct, through, strict=True):
        own, handed_on = (_canonical(server, *side) for side in (one, other))
        outcomes.append(
            Outcome(
                tool=call.tool,
                variant=variant,
                arguments=call.arguments,
                what=_what(call, one[0], other[0], own, handed_on.replace(prefix, "")),
                direct=own,
                through=handed_on,
            )
        )
    return outcomes


def _what(call: Call, direct: Mapping[str, Any], through: Mapping[str, Any], own: str, handed_on: str) -> str:
    if call.differs:
        return BY_DESIGN
    refusal = through.get("result", {}).get("_meta", {}).get(REFUSAL, {}).get("code", "")
    if refusal == "invalid-arguments":
        is_refused = "error" in direct or direct["result"].get("isError", False)
        return BOTH_REFUSE if is_refused else GATE
    return EQUAL if own == handed_on else WRONG


def _canonical(server: Server, response: Mapping[str, Any], kept: Mapping[str, str]) -> str:
    """Return what is compared of a response as canonical JSON, with what no two runs have in common named instead."""
    if "error" in response:
        return json.dumps({"error": response["error"]}, sort_keys=True, ensure_ascii=False)
    result = {name: response["result"][name] for name in COMPARED if name in response["result"]}
    if "_meta" in result:
        result["_meta"] = {key: value for key, value in result["_meta"].items() if key != REFUSAL}
        if not result["_meta"]:
            del result["_meta"]
    # An absent isError is false, says MCP.
    result.setdefault("isError", False)
    text = json.dumps(result, sort_keys=True, ensure_ascii=False)
    for name, value in kept.items():
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"<{name}>", text)
    for pattern, stands in server.normalised.values():
        text = re.sub(pattern, stands, text)
    return text


def _with(value: Any, kept: Mapping[str, str]) -> Any:
    match value:
        case str() if value.startswith("{int:"):
            return int(kept[value[5:-1]])
        case str():
            return re.sub(r"\{([a-z_]+)\}", lambda found: kept.get(found[1], found[0]), value)
        case Mapping():
            return {key: _with(inner, kept) for key, inner in value.items()}
        case list():
            return [_with(inner, kept) for inner in value]
    return value


def variants(schema: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield arguments that differ in one respect from those given, and what that is: each kind once."""
    required, properties = set(schema.get("required", ())), schema.get("properties", {})
    yield "a name that the schema does not know", {**given, "not_known": 1}
    if optional := sorted(given.keys() - required):
        yield "without what is optional", {name: given[name] for name in given if name not in optional}
    if needed := sorted(given.keys() & required):
        yield "without what is required", {name: given[name] for name in given if name != needed[0]}
    for name in sorted(properties.keys() - required):
        yield "null for what is optional", {**given, name: None}
        break
    for name, one in sorted(properties.items()):
        if name in required and "default" in one:
            yield "without what is required and has a default", {k: v for k, v in given.items() if k != name}
            break
    kinds = (
        ("integer", lambda one: one.get("type") == "integer", ("3", 3.0, 3.5, 10**30)),
        ("number", lambda one: one.get("type") == "number", ("3", 3.0, 10**30)),
        ("boolean", lambda one: one.get("type") == "boolean", ("true", "false", 1)),
        ("text", lambda one: one.get("type") == "string" and "enum" not in one, (3, True)),
        ("list", lambda one: one.get("type") == "array", ("one", '["one"]')),
        ("enumeration", lambda one: "enum" in one, None),
    )
    for kind, is_meant, values in kinds:
        name = next((name for name, one in sorted(properties.items()) if is_meant(one)), "")
        if not name:
            continue
        for value in values or (str(properties[name]["enum"][0]).swapcase(),):
            yield f"{json.dumps(value)[:12]} for {kind}", {**given, name: value}
    if name := next((name for name in sorted(given) if isinstance(given[name], str)), ""):
        yield "unicode in a text", {**given, name: f"{given[name]}\u202e ü✓𝄞\u0000"}


def prepare(server: Server, work: Path) -> None:
    """Write the files that a server begins with into a new directory."""
    for name, content in server.files.items():
        where = work / name
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content if isinstance(content, bytes) else content.encode())
