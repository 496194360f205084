"""Confirm with a real provider that changes break no conversation, with an API key of your own.

Toolbelt's tests run against fakes, which refuse what the providers' documentation says. This program has about 20 short
requests answered by the provider itself, and changes something before almost every one: a flip, a policy, a schema, a
load, a block, a directive; it also loses a request, restores the conversation and forks it. It needs no server and no
database. It prints a line for each request, and exits with 1 if the provider refused one.

    ANTHROPIC_API_KEY=… .venv/bin/python -m scripts.confirm_provider anthropic claude-opus-5-5
    OPENAI_API_KEY=… .venv/bin/python -m scripts.confirm_provider openai_responses gpt-5.6
    GEMINI_API_KEY=… .venv/bin/python -m scripts.confirm_provider gemini gemini-3.5-flash

Claude's current models are asked to refuse thinking whose prefix has changed ("prefix_mismatch_behavior": "error").
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_REQUESTS = 20
MAX_STEPS = 2
MAX_TOKENS = 2048
# Lets a request decide what happens to thinking whose prefix has changed.
CONTROLS = "thinking-binding-controls-2026-08-01"
SYSTEM = "You test tools. When the user writes 'call NAME', call the tool NAME; else answer in one word."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A model's answer: its messages, the calls in it (id, name, arguments), and the tokens that the request took."""

    messages: list[Any]
    calls: list[tuple[str, str, Any]]
    tokens: int
    cached: int


Send = Callable[[Mapping[str, Any]], Answer]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the conversation. Return 1 if the provider refused a request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("form", choices=tuple(_SENDERS), help="the provider's API")
    parser.add_argument("model", help="the model's name, as the provider has it")
    parser.add_argument("--base-url", help="the address of the API, if it is not the provider's own")
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    os.environ.setdefault("TOOLBELT_ENV", "test")
    import django

    django.setup()
    return converse(options.form, options.model, options.base_url)


def converse(form: str, model: str, base_url: str | None) -> int:
    """Have the model answer what the plan says. Print each request."""
    from tests.providers import soak
    from toolbelt.adapters import plain

    send = _SENDERS[form](model, base_url)
    service = soak.Service(form, None, lambda *_: ([], []))
    world = soak.World(random.Random(1))  # noqa: S311 (reproducible on purpose)
    toolbelt = plain.Toolbelt(world, model=model)  # type: ignore[arg-type]
    messages: list[Any] = []
    state: Mapping[str, Any] | None = None
    requests = 0
    print(f"{'':4}{'before the request':34}{'tokens':>8}{'cached':>8}  outcome")
    for what, says, change in PLAN:
        change(world)
        # Restored for every message, as by a process that has never seen the conversation.
        talk = toolbelt.conversation(form, model=model, system=SYSTEM, state=json.loads(json.dumps(state)))
        messages.append(service.say(says))
        run = talk.begin(says, "confirm")
        if what == "a request is lost":
            run.ask(messages)
            world.core.edit(_toolkit("kit0", policy="The lost request never had this."), lenient=False)
            messages.append(service.say("Are you there?"))
        for number in range(MAX_STEPS):
            if requests == MAX_REQUESTS:
                break
            step, requests = run.ask(messages), requests + 1
            try:
                answer = send(step.parameters)
            except soak.BAD_REQUESTS as error:
                print(f"{requests:3} {what:34}{'':16}  REFUSED: {error}")
                print(
                    "Please report this output: the fakes in tests/providers accept what this provider refuses."
                )
                return 1
            step.answered()
            messages += answer.messages
            called = ", ".join(name for _, name, _ in answer.calls)
            outcome = f"called {called}" if called else "answered"
            print(
                f"{requests:3} {what if not number else '':34}{answer.tokens:8,}{answer.cached:8,}  {outcome}"
            )
            results = [(call, name, run.call(name, given).text[:200]) for call, name, given in answer.calls]
            messages += service.results(results) if results else []
            if not results:
                break
        state = talk.state
    print(f"\n{requests} requests, none refused.")
    return 0


def _toolkit(key: str, **changes: Any) -> dict[str, Any]:
    return {"toolkits": [{"key": key, **changes}]}


def _switches(**switches: bool) -> Callable[[Any], None]:
    def change(world: Any) -> None:
        world.config |= switches
        world.core.edit({"agents": [{"key": "ada", "tools_config": world.config}]}, lenient=False)

    return change


def _edit(entries: Mapping[str, Any]) -> Callable[[Any], None]:
    return lambda world: world.core.edit(dict(entries), lenient=False)


def _nothing(world: Any) -> None:
    pass


def _schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


# What changes before a message, what the user says, and how it changes.
PLAN: list[tuple[str, str, Callable[[Any], None]]] = [
    ("nothing", "hello", _nothing),
    ("nothing", 'call p__tool1 {"q": "a"}', _nothing),
    ("a toolkit is turned off", "hello", _switches(kit1=False)),
    ("nothing", 'call p__tool5 {"q": "a"}', _nothing),
    ("a toolkit is turned on again", 'call p__tool5 {"q": "b"}', _switches(kit1=True)),
    ("a policy is edited", "hello", _edit(_toolkit("kit0", policy="kit0 now: {active_tools}."))),
    (
        "a schema and a description change",
        'call p__tool1 {"q": "c"}',
        _edit(
            {
                "tools": [
                    {"key": "p__tool1", "description": "Does it anew.", "input_schema": _schema("q", "r")}
                ]
            }
        ),
    ),
    ("the model loads a toolkit", 'call load_tools {"toolkit": "kit3"}', _nothing),
    ("a directive requires a call", "something about kit0", _nothing),
    ("a directive has a focus", "something about kit1", _nothing),
    ("a request is lost", "hello", _switches(kit4=True)),
    (
        "a toolkit is blocked",
        'call p__tool1 {"q": "d"} + p__tool6 {"q": "d"}',
        _edit(_toolkit("kit2", blocked=True)),
    ),
    ("all toolkits are turned off", "hello", _switches(kit0=False, kit1=False, kit4=False)),
    ("all toolkits are turned on again", 'call p__tool2 {"q": "e"}', _switches(kit0=True, kit1=True)),
]


def _claude(model: str, base_url: str | None) -> Send:
    import anthropic

    from toolbelt.formats import profiles

    client = anthropic.Anthropic(base_url=base_url, max_retries=2)
    more: dict[str, Any] = {}
    if profiles.of(model).binds_thinking:
        # The SDK's types do not have it yet.
        binding = {"block_binding": {"prefix_mismatch_behavior": "error"}}
        more = {"extra_body": {"thinking": {"type": "adaptive", **binding}}}

    def send(parameters: Mapping[str, Any]) -> Answer:
        headers = dict(parameters.get("extra_headers", {}))
        if more:
            betas = [value for value in (headers.get("anthropic-beta"), CONTROLS) if value]
            headers["anthropic-beta"] = ",".join(betas)
        fields = {**parameters, **more, "extra_headers": headers}
        answer = client.messages.create(model=model, max_tokens=MAX_TOKENS, **fields)
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        calls = [(block.id, block.name, block.input) for block in answer.content if block.type == "tool_use"]
        read, written = (
            answer.usage.cache_read_input_tokens or 0,
            answer.usage.cache_creation_input_tokens or 0,
        )
        total = answer.usage.input_tokens + read + written
        return Answer(
            messages=[{"role": "assistant", "content": content}], calls=calls, tokens=total, cached=read
        )

    return send


def _responses(model: str, base_url: str | None) -> Send:
    import openai

    client = openai.OpenAI(base_url=base_url, max_retries=2)

    def send(parameters: Mapping[str, Any]) -> Answer:
        answer = client.responses.create(model=model, max_output_tokens=MAX_TOKENS, **parameters)
        calls = [
            (item.call_id, item.name, json.loads(item.arguments or "{}"))
            for item in answer.output
            if item.type == "function_call"
        ]
        usage = answer.usage
        return Answer(
            messages=[item.model_dump(exclude_none=True) for item in answer.output],
            calls=calls,
            tokens=usage.input_tokens if usage else 0,
            cached=usage.input_tokens_details.cached_tokens if usage else 0,
        )

    return send


def _chat(model: str, base_url: str | None) -> Send:
    import openai

    client = openai.OpenAI(base_url=base_url, max_retries=2)

    def send(parameters: Mapping[str, Any]) -> Answer:
        answer = client.chat.completions.create(model=model, **parameters)
        message, usage = answer.choices[0].message, answer.usage
        calls = [
            (call.id, call.function.name, json.loads(call.function.arguments or "{}"))
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        details = usage.prompt_tokens_details if usage else None
        return Answer(
            messages=[message.model_dump(exclude_none=True)],
            calls=calls,
            tokens=usage.prompt_tokens if usage else 0,
            cached=(details.cached_tokens or 0) if details else 0,
        )

    return send


def _gemini(model: str, base_url: str | None) -> Send:
    from google import genai
    from google.genai import types

    client = genai.Client(vertexai=False, http_options=types.HttpOptions(base_url=base_url))

    def send(parameters: Mapping[str, Any]) -> Answer:
        answer = client.models.generate_content(model=model, **parameters)
        content = answer.candidates[0].content if answer.candidates else None
        if content is None:
            sys.exit("The model gave no answer. Try again, or another model.")
        calls = [
            (part.function_call.id or "", part.function_call.name or "", part.function_call.args or {})
            for part in content.parts or ()
            if part.function_call
        ]
        usage = answer.usage_metadata
        return Answer(
            messages=[content.model_dump(mode="json", exclude_none=True)],
            calls=calls,
            tokens=(usage.prompt_token_count or 0) if usage else 0,
            cached=(usage.cached_content_token_count or 0) if usage else 0,
        )

    return send


_SENDERS: dict[str, Callable[[str, str | None], Send]] = {
    "anthropic": _claude,
    "openai_responses": _responses,
    "openai_chat": _chat,
    "gemini": _gemini,
}

if __name__ == "__main__":
    raise SystemExit(main())
