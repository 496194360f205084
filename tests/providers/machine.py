"""Everything that may happen to conversations, as a state machine.

Toolbelt's rules, its renderers and its client are the real ones; the strict fakes judge without a network. What must
hold whatever happens has a function of its own, named after it, in tests.providers.promises and .reading.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.providers import direct, promises, reading, small_world, soak
from toolbelt.adapters import plain
from toolbelt.core import errors, request_key
from toolbelt.formats.appending import lines
from toolbelt.runtime.surfaces import appending, conversation_tokens, documents

_SWITCH = st.tuples(
    st.just("switch"),
    st.sampled_from([*small_world.TOOLKITS, *small_world.TOOLS]),
    st.sampled_from([True, False, None]),
)
_TOOL_FIELDS = st.one_of(
    st.fixed_dictionaries({"description": st.sampled_from(["Does p__ things.", "Does p__ more.", ""])}),
    st.fixed_dictionaries(
        {"input_schema": st.sampled_from([small_world.schema(), small_world.schema(q={"type": "string"})])}
    ),
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
        st.sampled_from(
            [
                *(f"tool {key}" for key in small_world.TOOLS),
                *(f"toolkit {key}" for key in small_world.TOOLKITS),
            ]
        ),
        st.none(),
    ),
    st.tuples(st.just("tools"), st.sampled_from(small_world.TOOLS), _TOOL_FIELDS),
    st.tuples(st.just("toolkits"), st.sampled_from(small_world.TOOLKITS), _KIT_FIELDS),
    st.tuples(
        st.just("agents"),
        st.just(soak.AGENT),
        st.lists(st.sampled_from(small_world.TOOLKITS), unique=True).map(
            lambda keys: {"allowed_toolkits": sorted(keys)}
        ),
    ),
)
_TEXT = st.one_of(
    st.just("hello"),
    st.sampled_from([f"something about {key}" for key in small_world.TOOLKITS]),
    # A focus, and a second step that has none.
    st.sampled_from(
        [f'insist {small_world.TOOLS[3]} {{"q": "something about {key}"}}' for key in small_world.TOOLKITS]
    ),
    st.sampled_from([f"insist {key}" for key in small_world.TOOLS]),
    st.lists(st.sampled_from(small_world.TOOLS), min_size=1, max_size=2).map(
        lambda names: "call " + " + ".join(names)
    ),
    st.sampled_from(
        [
            f'call load_tools {{"toolkit": "{key}"}} then call {small_world.TOOLS[4]}'
            for key in small_world.TOOLKITS
        ]
    ),
    st.sampled_from([f'call unload_tools {{"toolkit": "{key}"}}' for key in small_world.TOOLKITS]),
    st.sampled_from([f'call call_tool {{"tool": "{key}", "arguments": {{}}}}' for key in small_world.TOOLS]),
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


class Conversations(RuleBasedStateMachine):
    """Conversations of one program with models of one form, while operators change what its agent may do."""

    form = "anthropic"

    def __init__(self) -> None:
        super().__init__()
        self.service = direct.service(self.form)
        self.world = small_world.World(small_world.BELT)
        self.toolbelt = plain.Toolbelt(self.world)  # type: ignore[arg-type]
        self.talks: list[small_world.Talk] = [self._talk("s0")]

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
        talk, places = self._chosen(which), small_world.MODELS[self.form]
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

    @rule(key=st.sampled_from([*small_world.TOOLKITS, *small_world.TOOLS]), which=_WHICH)
    def turn_off_and_on_again(self, key: str, which: int) -> None:
        talk, config = self._chosen(which), dict(self.world.config)
        before = self._asked(talk)
        self._switch({**config, key: False})
        self._switch(config)
        promises.turning_off_and_on_again_says_nothing(before, self._asked(talk))

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
            "other agent": conversation_tokens.seal(small_world.OTHER, token),
            "changed": kept.token[:middle] + changed + kept.token[middle + 1 :],
            "nonsense": "tbc1.nonsense",
        }
        promises.a_foreign_token_begins_a_new_conversation(self._document(talk, {"token": foreign[how]}))

    @rule(text=_TEXT)
    def run_without_a_conversation(self, text: str) -> None:
        model, _ = small_world.MODELS[self.form][0]
        steps = [
            documents.of(self.world.core.surface(_key("w", number), message), self.form, None, model)
            for number, message in ((1, text), (2, None))
        ]
        promises.a_run_without_a_conversation_keeps_its_prefix(*(step["provider"] for step in steps))

    # Helpers.

    def _talk(self, session: str) -> small_world.Talk:
        return small_world.Talk(session, small_world.MODELS[self.form][0])

    def _chosen(self, which: int) -> small_world.Talk:
        return self.talks[which % len(self.talks)]

    def _kept(self, talk: small_world.Talk) -> Any:
        """Return the conversation, restored from what was stored."""
        model, platform = talk.place
        state = json.loads(json.dumps(talk.state))
        return self.toolbelt.conversation(
            self.form, model=model, platform=platform, system="Be brief.", state=state
        )

    def _begin(self, talk: small_world.Talk, text: str) -> None:
        talk.text, talk.kept = text, self._kept(talk)
        talk.run = talk.kept.begin(text, talk.session)

    def _answer(self, talk: small_world.Talk, ends: str) -> bool:
        """The model answers, and what it calls is run. Return whether it called anything."""
        step = self._ask(talk)
        items, calls = promises.the_provider_accepts_every_request(self.service, talk, step)
        entry, line = self.service.server.log[-1], step._request._append["line"]
        if step.restart is not None:
            del talk.sent[line], talk.heads[line]
        if line not in talk.heads:
            talk.known[line] = {}
        for name in reading.names(entry):
            talk.known[line].setdefault(name, len(self.world.core.purges))
        sent = [*_sent(step.parameters), *items]
        promises.what_was_sent_stays_as_it_was(talk.sent.get(line), sent)
        promises.the_prefix_stays_the_same(talk.heads.get(line), entry["head"])
        self._check(talk, step)
        step.answered()
        compaction = _compaction(self.form, items) if ends == "compacts" and not calls else []
        talk.heads[line], talk.compacted = entry["head"], bool(compaction)
        talk.sent[line] = [] if compaction else sent
        talk.messages += compaction or items
        talk.answered += 1
        talk.state = json.loads(json.dumps(talk.kept.state))
        promises.the_token_does_not_grow_with_the_history(talk)
        if not compaction:
            promises.nothing_is_said_while_nothing_changes(self._asked(talk), talk.kept._kept.token)
        if ends == "pauses" and not calls and self.form == "anthropic":
            self._continue_the_pause(talk)
        given = [(call, name, talk.run.call(name, args).text[:80]) for call, name, args in calls]
        talk.messages += self.service.results(given) if given else []
        self._call_everything(talk)
        return bool(calls)

    def _lose(self, talk: small_world.Talk, *, is_sent: bool) -> None:
        """A request fails before or after the provider has it, and the program knows nothing of an answer."""
        before = json.dumps(talk.kept.state)
        step = self._ask(talk)
        if is_sent:
            promises.the_provider_accepts_every_request(self.service, talk, step)
        promises.a_request_that_is_not_answered_leaves_no_trace(before, talk.kept)

    def _call_everything(self, talk: small_world.Talk) -> None:
        """A model calls tools that it remembers, as they are or through call_tool."""
        key = request_key.RequestKey(soak.AGENT, talk.session, talk.run._current.request_id, None)
        shown = self.world.core.surface(key, None)
        granted = reading.active(shown)
        for tool in small_world.TOOLS:
            promises.what_is_not_granted_is_not_run(talk.run.call(tool, {}), tool, granted)
        # call_tool may call what the agent may load, too.
        granted |= {decision.tool for decision in shown.resolution.discoverable()}
        for tool in small_world.TOOLS:
            through = talk.run.call("call_tool", {"tool": tool, "arguments": {}})
            promises.what_is_not_granted_is_not_run(through, tool, granted)

    def _ask(self, talk: small_world.Talk, **more: bool) -> Any:
        others = [(other, json.dumps(other.state)) for other in self.talks if other is not talk]
        step = talk.run.ask(talk.messages, **({"compacted": True} if talk.compacted else {}), **more)
        promises.forks_are_independent(others)
        line = step._request._append["line"]
        known = talk.known.get(line, {})
        purged = {name for name, before in known.items() if name in self.world.core.purges[before:]}
        # A turn that is only paused is resumed first.
        promises.only_a_purge_begins_a_conversation_again(step, set() if more.get("hold") else purged)
        return step

    def _continue_the_pause(self, talk: small_world.Talk) -> None:
        """The provider has paused the model's turn: the program sends it back as it is, whatever changed."""
        self._change([("switch", "post", not self.world.config.get("post"))])
        step = self._ask(talk, hold=True)
        promises.nothing_is_said_to_a_paused_turn(step)
        items, _ = promises.the_provider_accepts_every_request(self.service, talk, step)
        line = step._request._append["line"]
        promises.what_was_sent_stays_as_it_was(talk.sent.get(line), _sent(step.parameters))
        step.answered()
        talk.messages += items
        talk.sent[line] = [*_sent(step.parameters), *items]
        talk.state = json.loads(json.dumps(talk.kept.state))

    def _document(self, talk: small_world.Talk, conversation: Mapping[str, Any]) -> dict[str, Any]:
        model, platform = talk.place
        shown = self.world.core.surface(_key(talk.session, talk.answered), None)
        asked = appending.Conversation(**{"platform": platform, **conversation})
        append: dict[str, Any] = documents.of(shown, self.form, None, model, asked)["append"]
        return append

    def _asked(self, talk: small_world.Talk) -> dict[str, Any]:
        """Return what the conversation would be told now, outside any step."""
        return self._document(talk, self._kept(talk)._kept.question(talk.messages))

    def _check(self, talk: small_world.Talk, step: Any) -> None:
        shown = self.world.core.surface(_key(talk.session, talk.run._next_run.request_id), None)
        reading.check(self.service.server.log[-1], shown, lines.of(self.form, *talk.place))
        if talk.run._step_number > 0:
            promises.a_focus_concerns_one_step(step)

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
