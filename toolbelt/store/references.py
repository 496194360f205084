"""References to an entry, in words, to explain why it cannot be removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import Q

from toolbelt import models
from toolbelt.core import keys, loadouts

_BATCH_SIZE = 500
# By kind: the models that refer to it, their description, and the lookups of their owner and of what they refer to.
_REFERRING_MODELS = {
    "plugin": ((models.Tool, "the tool", "key", "plugin__name"),),
    "tool": (
        (models.Member, "the toolkit", "toolkit__key", "tool__key"),
        (models.AgentTool, "the agent", "agent__key", "tool__key"),
        (models.ToolOverride, "the agent", "agent__key", "tool__key"),
        (models.SubAppTool, "the sub-app", "sub_app__key", "tool__key"),
    ),
    "toolkit": (
        (models.AgentToolkit, "the agent", "agent__key", "toolkit__key"),
        (models.ToolkitSwitch, "the agent", "agent__key", "toolkit__key"),
    ),
    "agent": ((models.SubAppAgent, "the sub-app", "sub_app__key", "agent__key"),),
}


# By kind: the field of gate rules that names its entries.
_NAMED_BY_RULES = {"agent": "agents", "sub_app": "sub_apps", "toolkit": "toolkits", "plugin": "plugins"}


def users(kind: str, name: str) -> list[str]:
    """Return the entries that refer to this one, such as "the agent assistant", each once."""
    descriptions = list(_referring(kind, name))
    if kind == "category":
        descriptions += _of_category(name)
    elif kind in _NAMED_BY_RULES:
        descriptions += _of_rules(_NAMED_BY_RULES[kind], name)
    if kind == "loadout" and keys.fold(name) not in loadouts.BUILT_IN:
        # Without its row, a built-in loadout with the same name would replace it.
        descriptions += _of_loadout(name)
    return list(dict.fromkeys(descriptions))


def of_tools(tools: Iterable[str]) -> dict[str, list[str]]:
    """Return the entries that refer to each of these tools, in as many queries as for one tool."""
    keys_ = list(tools)
    by_tool: dict[str, list[str]] = {}
    for model, word, owner, target in _REFERRING_MODELS["tool"]:
        for start in range(0, len(keys_), _BATCH_SIZE):
            rows = model._default_manager.filter(**{f"{target}__in": keys_[start : start + _BATCH_SIZE]})
            for tool, key in rows.order_by(owner).values_list(target, owner):
                descriptions = by_tool.setdefault(tool, [])
                if f"{word} {key}" not in descriptions:
                    descriptions.append(f"{word} {key}")
    return by_tool


def _referring(kind: str, name: str) -> Iterator[str]:
    for model, word, owner, target in _REFERRING_MODELS.get(kind, ()):
        rows = model._default_manager.filter(**{target: name}).order_by(owner)
        yield from (f"{word} {key}" for key in rows.values_list(owner, flat=True))


def _of_rules(field: str, name: str) -> Iterator[str]:
    for rule in models.GateRule.objects.all():
        if _lists(getattr(rule, field), name):
            yield f"the rule {rule.key}"


def _of_category(name: str) -> Iterator[str]:
    for plugin in models.Plugin.objects.filter(category__iexact=name):
        yield f"the plugin {plugin.name}"
    for key in models.Tool.objects.filter(category__iexact=name).values_list("key", flat=True):
        yield f"the tool {key}"
    for loadout in models.Loadout.objects.all():
        if _lists(loadout.categories, name):
            yield f"the loadout {loadout.name}"


def _of_loadout(name: str) -> Iterator[str]:
    for child in models.Loadout.objects.filter(parent__iexact=name).exclude(name=name):
        yield f"the loadout {child.name}"
    for agent in models.Agent.objects.filter(~Q(session_loadouts=[]) | Q(loadout__iexact=name)):
        if keys.fold(agent.loadout) == keys.fold(name) or _lists(agent.session_loadouts, name):
            yield f"the agent {agent.key}"
    equipped = models.AgentSession.objects.filter(loadout__iexact=name).order_by("agent__key", "key")
    for key, owner in equipped.values_list("key", "agent__key"):
        yield f"the session {key} of the agent {owner}"


def _lists(names: object, name: str) -> bool:
    return isinstance(names, list) and any(
        isinstance(listed, str) and keys.fold(listed) == keys.fold(name) for listed in names
    )
