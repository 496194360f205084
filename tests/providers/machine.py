"""Everything that may happen to conversations, as a state machine, and what must hold whatever happens.

Toolbelt's rules, its renderers and its client are the real ones; the strict fakes judge without a network. What must
hold has a function of its own, named after it, here and in tests.providers.reading: a failure names it.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.providers import anthropic_server, direct, reading, soak
from toolbelt.adapters import plain
from toolbelt.core import belts, errors, meta_tools, request_key
from toolbelt.core.scenarios import CoreWorld
from toolbelt.formats.appending import lines
from toolbelt.runtime.surfaces import appending, conversation_tokens, documents

TOOLS = [f"p__{letter}" for letter in "abcdef"]
TOOLKITS = ["sales", "desk", "post"]
OTHER = "eve"
_CONFIG = {"sales": True, "desk": True}
# What the models of one form are called; a conversation moves between those of a form.
MODELS: dict[str, list[tuple[str, lines.Platform]]] = {
    "anthropic": [
        ("claude-opus-5-5", "api"),
        ("claude-haiku-5-5", "api"),
        ("claude-opus-5-5", "bedrock"),
        ("claude-haiku-4-5", "api"),
    ],
    "openai_responses": [("gpt-5.6", "api"), ("gpt-5.4", "api")],
    "openai_chat": [("gpt-5.6", "api"), ("qwen3-coder", "api"), ("gemma-3", "api")],
    "gemini": [("gemini-3.5-flash", "api")],
}
# A token of a conversation in which each name was ever said: two digests, its name, and what JSON and Base64 add.
_TOKEN, _NAME = 300, 40


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _toolkit(key: str, members: Sequence[str], choice: str) -> dict[str, Any]:
    trigger = {"name": "focus", "any": [f"about {key}"], "focus": [members[0]], "tool_choice": choice}
    return {
        "key": key,
        "description": f"About {key}",
        "members": list(members),
        "policy": f"{key} policy: {{active_tools}}.",
        "policy_when_off": f"{key} is off." if key == "desk" else "",
        "triggers": [trigger],
    }


BELT: dict[str, Any] = {
    "plugins": [{"name": "p", "namespace": "p", "trusted": True, "in_code": True}],
    "tools": [
        {"key": key, "plugin": "p", "description": f"Does {key}.", "input_schema": _schema()} for key in TOOLS
    ],
    "toolkits": [
        _toolkit("sales", TOOLS[:2], "required"),
        _toolkit("desk", [*TOOLS[2:4], TOOLS[0]], "auto"),
        _toolkit("post", TOOLS[4:], "auto"),
    ],
    "agents": [
        {"key": key, "tools_config": _CONFIG, "allowed_toolkits": ["post", "desk"]}
        for key in (soak.AGENT, OTHER)
    ],
}

_SWITCH = st.tuples(
    st.just("switch"), st.sampled_from([*TOOLKITS, *TOOLS]), st.sampled_from([True, False, None])
)
_TOOL_FIELDS = st.one_of(
    st.fixed_dictionaries({"description": st.sampled_from(["Does p__ things.", "Does p__ more.", ""])}),
    st.fixed_dictionaries({"input_schema": st.sampled_from([_schema(), _schema(q={"type": "string"})])}),
    st.fixed_dictionaries({"retired": st.booleans()}),
)
_KIT_FIELDS = st.one_of(
    st.fixed_dictionaries({"policy": st.sampled_from(["", "Be kind.", "Use {active_tools}."])}),
    st.fixed_dictionaries({"blocked": st.booleans()}),
    st.fixed_dictionaries({"description": st.sampled_from(["Of use", "Of more use"])}),
)
_CHANGE = st.one_of(
    _SWITCH,
    _SWITCH,
    st.tuples(
        st.just("purge"),
        st.sampled_from([*(f"tool {key}" for key in TOOLS), *(f"toolkit {key}" for key in TOOLKITS)]),
        st.none(),
    ),
    st.tuples(st.just("tools"), st.sampled_from(TOOLS), _TOOL_FIELDS),
    st.tuples(st.just("toolkits"), st.sampled_from(TOOLKITS), _KIT_FIELDS),
    st.tuples(
        st.just("agents"),
        st.just(soak.AGENT),
        st.lists(st.sampled_from(TOOLKITS), unique=True).map(lambda keys: {"allowed_toolkits": sorted(keys)}),
    ),
)
_TEXT = st.one_of(
    st.just("hello"),
    st.sampled_from([f"something about {key}" for key in TOOLKITS]),
    # A focus, and a second step that has none.
    st.sampled_from([f'insist {TOOLS[3]} {{"q": "something about {key}"}}' for key in TOOLKITS]),
    st.sampled_from([f"insist {key}" for key in TOOLS]),
    st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2).map(lambda names: "call " + " + ".join(names)),
    st.sampled_from([f'call load_tools {{"toolkit": "{key}"}} then call {TOOLS[4]}' for key in TOOLKITS]),
    st.sampled_from([f'call unload_tools {{"toolkit": "{key}"}}' for key in TOOLKITS]),
    st.sampled_from([f'call call_tool {{"tool": "{key}", "arguments": {{}}}}' for key in TOOLS]),
)
_CHANGES = st.lists(_CHANGE, max_size=3)
_TROUBLE = st.tuples(
    st.sampled_from(["", "", "", "lost", "lost after it was sent", "the user writes again", "crash", "fork"]),
    _CHANGES,
)
_TALKS = 3
_WHICH = st.integers(0, _TALKS - 1)


_TURN = rule(
    which=_WHICH,
    text=_TEXT,
    place=st.integers(0, 3),
    changes=_CHANGES,
    trouble=st.lists(_TROUBLE, min_size=2, max_size=2),
    ends=st.sampled_from(["", "", "compacts", "pauses"]),
)


@dataclasses.dataclass
class Talk:
    """A conversation of a program: its own messages and Toolbelt's state, stored together.

    place: The model, and where it runs. text: What the user wrote last. run: The run that answers it. step: The last
    request. heads: The digest of each line's prefix. sent: What each line was sent last, with the answer. known: What
    each line's model was told of: ``tool p__a``, ``toolkit desk``. begun: How many purges there were when each line
    began. compacted: The provider compacted it since the last request. answered: How many requests were answered.
    """

    session: str
    place: tuple[str, lines.Platform]
    messages: list[Any] = dataclasses.field(default_factory=list)
    state: Mapping[str, Any] | None = None
    text: str = ""
    run: Any = None
    kept: Any = None
    heads: dict[str, str] = dataclasses.field(default_factory=dict)
    sent: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    known: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    begun: dict[str, int] = dataclasses.field(default_factory=dict)
    compacted: bool = False
    answered: int = 0


class World(soak.World):
    """A configuration of which tools and texts can be purged."""

    def __init__(self, belt: Mapping[str, Any]) -> None:
        super().__init__(random.Random(0), belt)  # noqa: S311 (unused: the machine draws everything)
        self.core: _Core = _Core()
        self.core.load(copy.deepcopy(dict(belt)), lenient=False)


class _Core(CoreWorld):
    """``purges`` is what was purged, the first first: ``tool p__a``, ``toolkit desk``."""

    def __init__(self) -> None:
        super().__init__()
        self.purges: list[str] = []

    def _read(self, lenient: bool) -> belts.Belt:
        belt = super()._read(lenient)
        numbers = {name: number for number, name in enumerate(self.purges, 1)}
        return dataclasses.replace(
            belt, catalog=dataclasses.replace(belt.catalog, purges=numbers, derived={})
        )


class Conversations(RuleBasedStateMachine):
    """Conversations of one program with models of one form, while operators change what its agent may do."""

    form = "anthropic"

    def __init__(self) -> None:
        super().__init__()
        self.service = direct.service(self.form)
        self.world = World(BELT)
        self.toolbelt = plain.Toolbelt(self.world)  # type: ignore[arg-type]
        self.talks: list[Talk] = [self._talk("s0")]

    # What programs, users and operators do.

    @_TURN
    def take_a_turn(
        self,
        which: int,
        text: str,
        place: int,
        changes: list[Any],
        trouble: list[tuple[str, list[Any]]],
        ends: str,
    ) -> None:
        """The user writes, and the model answers in up to two steps; operators change what they like in between.

        The conversation may go on with another model: of another line, or back on an earlier one.
        """
        talk, places = self._chosen(which), MODELS[self.form]
        talk.place = places[place % len(places)]
        self._change(changes)
        talk.messages.append(self.service.say(text))
        self._begin(talk, text)
        for what, later in trouble:
            if what.startswith("lost"):
                self._lose(talk, is_sent=what == "lost after it was sent")
            self._change(later)
            match what:
                case "the user writes again":
                    talk.messages.append(self.service.say("are you there?"))
                case "crash":
                    # Another process takes over: it knows what was stored, and nothing else.
                    talk.messages = json.loads(json.dumps(talk.messages))
                    self._begin(talk, text)
                case "fork" if len(self.talks) < _TALKS:
                    branch = copy.deepcopy(dataclasses.replace(talk, run=None, kept=None))
                    self._begin(branch, text)
                    self.talks.append(branch)
            if not self._answer(talk, ends):
                return

    @_TURN
    def take_another_turn(self, **drawn: Any) -> None:
        """Hypothesis tries histories without some of the rules; few are worth trying without turns."""
        self.take_a_turn(**drawn)

    @rule(changes=_CHANGES)
    def change(self, changes: list[Any]) -> None:
        self._change(changes)

    @rule(session=st.integers(1, 2))
    def begin_another(self, session: int) -> None:
        if len(self.talks) < _TALKS:
            self.talks.append(self._talk(f"s{session}"))

    # What anyone may try.

    @rule(key=st.sampled_from([*TOOLKITS, *TOOLS]), which=_WHICH)
    def turn_off_and_on_again(self, key: str, which: int) -> None:
        talk, config = self._chosen(which), dict(self.world.config)
        before = self._asked(talk)
        self._switch({**config, key: False})
        self._switch(config)
        turning_off_and_on_again_says_nothing(before, self._asked(talk))

    @rule(which=_WHICH, how=st.sampled_from(["other agent", "changed", "nonsense"]))
    def bring_a_foreign_token(self, which: int, how: str) -> None:
        talk = self._chosen(which)
        kept = self._kept(talk)._kept
        if not kept.token:
            return
        token = conversation_tokens.unseal(soak.AGENT, kept.token)
        assert token is not None
        middle = len(kept.token) // 2
        changed = "A" if kept.token[middle] != "A" else "B"
        foreign = {
            "other agent": conversation_tokens.seal(OTHER, token),
            "changed": kept.token[:middle] + changed + kept.token[middle + 1 :],
            "nonsense": "tbc1.nonsense",
        }
        a_foreign_token_begins_a_new_conversation(self._document(talk, {"token": foreign[how]}))

    @rule(text=_TEXT)
    def run_without_a_conversation(self, text: str) -> None:
        model, _ = MODELS[self.form][0]
        steps = [
            documents.of(self.world.core.surface(_key("w", number), message), self.form, None, model)
            for number, message in ((1, text), (2, None))
        ]
        a_run_without_a_conversation_keeps_its_prefix(*(step["provider"] for step in steps))

    # Helpers.

    def _talk(self, session: str) -> Talk:
        return Talk(session, MODELS[self.form][0])

    def _chosen(self, which: int) -> Talk:
        return self.talks[which % len(self.talks)]

    def _kept(self, talk: Talk) -> Any:
        """Return the conversation, restored from what was stored."""
        model, platform = talk.place
        state = json.loads(json.dumps(talk.state))
        return self.toolbelt.conversation(
            self.form, model=model, platform=platform, system="Be brief.", state=state
        )

    def _begin(self, talk: Talk, text: str) -> None:
        talk.text, talk.kept = text, self._kept(talk)
        talk.run = talk.kept.begin(text, talk.session)

    def _answer(self, talk: Talk, ends: str) -> bool:
        """The model answers, and what it calls is run. Return whether it called anything."""
        step = self._ask(talk)
        items, calls = the_provider_accepts_every_request(self.service, talk, step)
        entry, line = self.service.server.log[-1], step._request._append["line"]
        if step.restart is not None:
            del talk.sent[line], talk.heads[line]
        if line not in talk.heads:
            talk.known[line], talk.begun[line] = set(), len(self.world.core.purges)
        talk.known[line] |= reading.names(entry)
        sent = [*_sent(step.parameters), *items]
        what_was_sent_stays_as_it_was(talk.sent.get(line), sent)
        the_prefix_stays_the_same(talk.heads.get(line), entry["head"])
        self._check(talk, step)
        step.answered()
        compaction = _compaction(self.form, items) if ends == "compacts" and not calls else []
        talk.heads[line], talk.compacted = entry["head"], bool(compaction)
        talk.sent[line] = [] if compaction else sent
        talk.messages += compaction or items
        talk.answered += 1
        talk.state = json.loads(json.dumps(talk.kept.state))
        the_token_does_not_grow_with_the_history(talk)
        if not compaction:
            nothing_is_said_while_nothing_changes(self._asked(talk), talk.kept._kept.token)
        if ends == "pauses" and not calls and self.form == "anthropic":
            self._continue_the_pause(talk)
        given = [(call, name, talk.run.call(name, args).text[:80]) for call, name, args in calls]
        talk.messages += self.service.results(given) if given else []
        self._call_everything(talk)
        return bool(calls)

    def _lose(self, talk: Talk, *, is_sent: bool) -> None:
        """A request fails before or after the provider has it, and the program knows nothing of an answer."""
        before = json.dumps(talk.kept.state)
        step = self._ask(talk)
        if is_sent:
            the_provider_accepts_every_request(self.service, talk, step)
        a_request_that_is_not_answered_leaves_no_trace(before, talk.kept)

    def _call_everything(self, talk: Talk) -> None:
        """A model calls tools that it remembers, as they are or through call_tool."""
        key = request_key.RequestKey(soak.AGENT, talk.session, talk.run._current.request_id, None)
        shown = self.world.core.surface(key, None)
        granted = reading.active(shown)
        for tool in TOOLS:
            what_is_not_granted_is_not_run(talk.run.call(tool, {}), tool, granted)
        # call_tool may call what the agent may load, too.
        granted |= {decision.tool for decision in shown.resolution.discoverable()}
        for tool in TOOLS:
            through = talk.run.call("call_tool", {"tool": tool, "arguments": {}})
            what_is_not_granted_is_not_run(through, tool, granted)

    def _ask(self, talk: Talk, **more: bool) -> Any:
        others = [(other, json.dumps(other.state)) for other in self.talks if other is not talk]
        step = talk.run.ask(talk.messages, **({"compacted": True} if talk.compacted else {}), **more)
        forks_are_independent(others)
        line = step._request._append["line"]
        purged = talk.known.get(line, set()) & {*self.world.core.purges[talk.begun.get(line, 0) :]}
        # A turn that is only paused is resumed first.
        only_a_purge_begins_a_conversation_again(step, set() if more.get("hold") else purged)
        return step

    def _continue_the_pause(self, talk: Talk) -> None:
        """The provider has paused the model's turn: the program sends it back as it is, whatever changed."""
        self._change([("switch", "post", not self.world.config.get("post"))])
        step = self._ask(talk, hold=True)
        nothing_is_said_to_a_paused_turn(step)
        items, _ = the_provider_accepts_every_request(self.service, talk, step)
        line = step._request._append["line"]
        what_was_sent_stays_as_it_was(talk.sent.get(line), _sent(step.parameters))
        step.answered()
        talk.messages += items
        talk.sent[line] = [*_sent(step.parameters), *items]
        talk.state = json.loads(json.dumps(talk.kept.state))

    def _document(self, talk: Talk, conversation: Mapping[str, Any]) -> dict[str, Any]:
        model, platform = talk.place
        shown = self.world.core.surface(_key(talk.session, talk.answered), None)
        asked = appending.Conversation(**{"platform": platform, **conversation})
        append: dict[str, Any] = documents.of(shown, self.form, None, model, asked)["append"]
        return append

    def _asked(self, talk: Talk) -> dict[str, Any]:
        """Return what the conversation would be told now, outside any step."""
        return self._document(talk, self._kept(talk)._kept.question(talk.messages))

    def _check(self, talk: Talk, step: Any) -> None:
        shown = self.world.core.surface(_key(talk.session, talk.run._next_run.request_id), None)
        reading.check(self.service.server.log[-1], shown, lines.of(self.form, *talk.place))
        if talk.run._step_number > 0:
            a_focus_concerns_one_step(step)

    def _change(self, changes: list[tuple[str, str, Any]]) -> None:
        """Change several things at once, unless Toolbelt's rules refuse that."""
        config = dict(self.world.config)
        entries: dict[str, dict[str, dict[str, Any]]] = {"agents": {soak.AGENT: {"tools_config": config}}}
        for section, key, fields in changes:
            if section == "switch":
                config[key] = fields
            elif section != "purge":
                entries.setdefault(section, {}).setdefault(key, {}).update(fields)
        written = {
            section: [{"key": key, **fields} for key, fields in named.items()]
            for section, named in entries.items()
        }
        if not changes:
            return
        purges = len(self.world.core.purges)
        self.world.core.purges += [key for section, key, _ in changes if section == "purge"]
        try:
            self.world.core.edit(written, lenient=False)
            self.world.config = config
        except errors.ToolbeltError:
            del self.world.core.purges[purges:]

    def _switch(self, config: dict[str, bool | None]) -> None:
        self.world.core.edit({"agents": [{"key": soak.AGENT, "tools_config": config}]}, lenient=False)
        self.world.config = config


def the_provider_accepts_every_request(service: soak.Service, talk: Talk, step: Any) -> Any:
    try:
        return service.send(talk.place[0], step.parameters)
    except anthropic_server.Refused as refused:
        raise AssertionError(f"refused: {refused}") from refused


def only_a_purge_begins_a_conversation_again(step: Any, purged: Collection[str]) -> None:
    """A purge of what its model was told of, and no other change."""
    restart = step.restart or {"code": None}
    assert restart["code"] == ("purged" if purged else None), step.restart


def the_prefix_stays_the_same(before: str | None, now: str) -> None:
    assert before in (None, now)


def what_was_sent_stays_as_it_was(before: list[Any] | None, now: list[Any]) -> None:
    """Everything that a line's model was sent before, and answered, is at the beginning of the next request."""
    begun = json.loads(json.dumps(now))[: len(before or [])]
    assert begun == json.loads(json.dumps(before or []))


def nothing_is_said_while_nothing_changes(append: Mapping[str, Any], token: str) -> None:
    assert append["messages"] == []
    assert append["token"] == token
    assert append["prefix"] is None


def nothing_is_said_to_a_paused_turn(step: Any) -> None:
    assert step._request._append["messages"] == []


def turning_off_and_on_again_says_nothing(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    assert before == now


def the_token_does_not_grow_with_the_history(talk: Talk) -> None:
    for line in talk.state["lines"].values() if talk.state else ():
        token = conversation_tokens.unseal(soak.AGENT, line["token"])
        assert token is not None
        assert token.entries <= talk.answered
        assert len(line["token"]) <= _TOKEN + _NAME * (
            len(TOOLS) + len(meta_tools.SCHEMAS) + 2 * len(TOOLKITS)
        )


def a_request_that_is_not_answered_leaves_no_trace(before: str, kept: Any) -> None:
    assert json.dumps(kept.state) == before


def forks_are_independent(others: list[tuple[Talk, str]]) -> None:
    for other, before in others:
        assert json.dumps(other.state) == before


def a_foreign_token_begins_a_new_conversation(append: Mapping[str, Any]) -> None:
    assert append["restart"] is not None
    assert append["restart"]["code"] == "unknown"
    assert append["prefix"] is not None


def what_is_not_granted_is_not_run(result: Any, tool: str, granted: Collection[str]) -> None:
    assert result.is_error or tool in granted


def a_focus_concerns_one_step(step: Any) -> None:
    assert "in your next step" not in json.dumps(step._request._append["messages"])


def a_run_without_a_conversation_keeps_its_prefix(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    """A directive changes the choice among the tools, and what is said; never the tools or the system prompt."""
    choice = {"tool_choice", "tool_config", "first_step"}
    kept = [{name: part for name, part in step.items() if name not in choice} for step in (first, second)]
    assert kept[0] == kept[1]


def _key(session: str, number: Any) -> request_key.RequestKey:
    return request_key.RequestKey(soak.AGENT, session, f"r{number}", None)


def _sent(parameters: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a request without those of its prefix, which is compared on its own."""
    return list(parameters.get("messages") or parameters.get("input") or parameters["contents"])


def _compaction(form: str, items: list[Any]) -> list[Any]:
    """Return the answer with which the provider compacts the conversation, if it does that; if not, nothing."""
    match form:
        case "anthropic":
            text = [block for block in items[0]["content"] if block["type"] == "text"]
            return [{"role": "assistant", "content": [{"type": "compaction", "content": "…"}, *text]}]
        case "openai_responses":
            return [{"type": "compaction", "id": "cmp", "encrypted_content": "…"}, items[-1]]
    return []


def run(form: str, **settings: Any) -> None:
    """Try the state machine for a form. Raise what a property says when it does not hold."""
    named = type(f"Conversations_{form}", (Conversations,), {"form": form})
    # A loaded machine is slow, and that is no failure.
    slow = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
    wanted = hypothesis.settings(stateful_step_count=12, suppress_health_check=slow, **settings)
    run_state_machine_as_test(named, settings=wanted)
