"""A strict fake of Gemini's ``generateContent``: the order of turns, thought signatures, the choice among the tools.

Each rule names its source. STRICT marks where the fake refuses more than is documented.

  FC   https://ai.google.dev/gemini-api/docs/function-calling, "Function calling modes"
  TS   https://ai.google.dev/gemini-api/docs/thought-signatures
  ERR  messages of the service, as users report them: "Please ensure that function call turn comes immediately after a
       user turn or after a function response turn.", "… that the number of function response parts is equal to the
       number of function call parts of the function call turn.", "Invalid function name. Must start with a letter …"
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from tests.providers import fakes, scripted
from tests.providers.anthropic_server import Refused, canonical, digest_of

MODELS = frozenset({"gemini-3.5-flash", "gemini-3.1-pro"})
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
# What programs write in fields of their own names.
OPAQUE = frozenset({"args", "parametersJsonSchema", "response"})
# AUTO takes no list of names (FC).
MODES = {"AUTO": False, "ANY": True, "VALIDATED": True, "NONE": False}


def in_camel_case(value: Any) -> Any:
    """Return a request with the names of its fields in camel case: the service takes either."""
    if isinstance(value, list):
        return [in_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub("_([a-z])", lambda found: found[1].upper(), name): each for name, each in value.items()}
    return {name: each if name in OPAQUE else in_camel_case(each) for name, each in named.items()}


def parts_of(content: dict[str, Any], kind: str) -> list[Any]:
    """Return what the parts of this kind hold."""
    return [part[kind] for part in content["parts"] if kind in part]


def signature(call: dict[str, Any]) -> str:
    """Return the signature of a call, which a request must send back with it."""
    digest = hashlib.sha256(canonical([call["name"], call.get("args") or {}]).encode())
    return base64.b64encode(digest.digest()).decode()


class Judge:
    """What is wrong with one request: raises Refused; afterwards has what the model sees and may call."""

    def __init__(self, model: str, body: dict[str, Any]) -> None:
        if model not in MODELS:
            raise Refused(f"models/{model} is not found for API version v1beta")
        self.body, self.contents = body, body["contents"]
        self.declared: dict[str, dict[str, Any]] = {}
        self.system = [part["text"] for part in (body.get("systemInstruction") or {}).get("parts", ())]
        self.texts = list(self.system)
        self._declared()
        self._turns()
        self.allowed = self._choice()

    def _declared(self) -> None:
        for tool in self.body.get("tools") or ():
            for number, declaration in enumerate(tool["functionDeclarations"]):
                name = declaration["name"]
                where = f"tools[0].function_declarations[{number}]"
                if not NAME.fullmatch(name):
                    raise Refused(f"{where}.name: Invalid function name. Must start with a letter")
                if name in self.declared:
                    raise Refused(f"{where}.name: Duplicate function declaration found: {name}")
                if declaration["parametersJsonSchema"].get("type") != "object":
                    raise Refused(f"{where}.parameters: schema should be of type OBJECT")
                self.declared[name] = declaration
        if "systemInstruction" in self.body and not any(text.strip() for text in self.system):
            raise Refused("system_instruction: must have a text parameter")

    def _turns(self) -> None:
        expected = 0
        before: dict[str, Any] = {}
        for index, content in enumerate(self.contents):
            if content.get("role") not in ("user", "model"):
                raise Refused("Please use a valid role: user, model.")
            if not content.get("parts"):
                raise Refused(f"contents[{index}].parts: must not be empty")
            texts, responses = parts_of(content, "text"), parts_of(content, "functionResponse")
            calls = parts_of(content, "functionCall")
            if not all(text.strip() for text in texts):
                raise Refused(f"contents[{index}]: must have a text parameter")
            if responses and (content["role"] != "user" or not expected):
                raise Refused(
                    "Please ensure that function response turn comes immediately after a function call turn."
                )
            if len(responses) != expected:
                raise Refused(
                    "Please ensure that the number of function response parts is equal to the number of function call"
                    " parts of the function call turn."
                )
            if calls and (content["role"] != "model" or before.get("role") != "user"):
                raise Refused(
                    "Please ensure that function call turn comes immediately after a user turn or after a function"
                    " response turn."
                )
            self._signed(index, content)
            expected, before = len(calls), content
            if content["role"] == "user":
                self.texts += [notice for text in texts for notice in scripted.notices(text)]
        if expected or before.get("role") != "user":
            raise Refused("Please ensure that multiturn requests end with a user role.")  # STRICT

    def _signed(self, index: int, content: dict[str, Any]) -> None:
        """TS: in each step, the first call has a signature, which comes back as it was. STRICT: in all turns."""
        part = next((part for part in content["parts"] if "functionCall" in part), None)
        if part is None:
            return
        name = part["functionCall"]["name"]
        if "thoughtSignature" not in part:
            raise Refused(
                f"Function call is missing a thought_signature in functionCall parts: {name}, position {index}."
            )
        given = part["thoughtSignature"].replace("-", "+").replace("_", "/")
        if given != signature(part["functionCall"]):
            raise Refused("Corrupted thought signature.")

    def _choice(self) -> set[str]:
        config = (self.body.get("toolConfig") or {}).get("functionCallingConfig")
        if config is None:
            return {*self.declared}
        mode, names = config.get("mode", "AUTO"), config.get("allowedFunctionNames")
        if mode not in MODES:
            raise Refused(f"tool_config.function_calling_config.mode: Invalid value {mode!r}")
        if names is None:
            return set() if mode == "NONE" else {*self.declared}
        if not MODES[mode]:
            raise Refused("allowed_function_names may only be set with the mode ANY or VALIDATED.")
        if not {*names} <= self.declared.keys() or not names:
            raise Refused("allowed_function_names should be a subset of the function declarations.")
        return {*names}

    def entry(self) -> dict[str, Any]:
        """Return the entry of the log for a request that was accepted."""
        prefix = [self.body.get("systemInstruction"), self.body.get("tools")]
        return {
            "status": 200,
            "declared": [*self.declared],
            "shown": sorted(self.declared),
            "allowed": sorted(self.allowed),
            "defined": self.declared,
            "texts": self.texts,
            "messages": self.contents,
            "head": digest_of(canonical(prefix)),
        }


def answer(judge: Judge, number: int) -> dict[str, Any]:
    """Return the content of the scripted model."""
    texts: list[str] = []
    step = 0
    for content in judge.contents:
        if content["role"] == "user":
            texts += parts_of(content, "text")
        else:
            texts, step = (texts, step + 1) if parts_of(content, "functionCall") else ([], 0)
    parts: list[dict[str, Any]] = []
    for position, call in enumerate(scripted.calls(texts, step, judge.allowed)):
        # The modes with names constrain decoding: not even a model that insists can call another function (FC).
        if call.name not in judge.allowed:
            continue
        called = {"id": f"call_{number}_{position}", "name": call.name, "args": call.arguments}
        parts.append({"functionCall": called} | ({} if parts else {"thoughtSignature": signature(called)}))
    return {"role": "model", "parts": parts or [{"text": f"done {number}"}]}


class Server(fakes.Fake):
    """The server."""

    def __init__(self) -> None:
        super().__init__(Handler)


class Handler(fakes.Handler):
    """A handler of its requests."""

    server: Server

    def do_POST(self) -> None:
        body = in_camel_case(self.body())
        model = self.path.rpartition("/")[2].partition(":")[0]
        number = len(self.server.log)
        try:
            judge = Judge(model, body)
        except Refused as refused:
            error = {"code": 400, "message": str(refused), "status": "INVALID_ARGUMENT"}
            refusal = {"status": 400, "message": str(refused), "body": body}
            return self.answer(400, {"error": error}, refusal)
        candidate = {"index": 0, "finishReason": "STOP", "content": answer(judge, number)}
        self.answer(200, {"candidates": [candidate], "modelVersion": model}, judge.entry())
