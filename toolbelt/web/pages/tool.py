"""How is the page of one tool filled: what a model is sent of it, and which agents have it?"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import holdings, usage
from toolbelt.core import catalog, errors, reasons, risks, schema
from toolbelt.web import words
from toolbelt.web.pages import arguments, model, paging, sections, texts
from toolbelt.web.pages import tools as pages
from toolbelt.web.presenters import access, answers, pieces, tools

_HINTS = {
    "readOnlyHint": ("only reads", "does not only read"),
    "destructiveHint": ("may destroy", "destroys nothing"),
    "idempotentHint": ("twice is once", "twice is twice"),
    "openWorldHint": ("reaches the outside", "stays inside"),
}


def page(
    found: holdings.Holdings,
    key: str,
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    admin_url: str,
    notice: answers.Notice | None,
    may_see_calls: bool,
    may_stop: bool,
) -> tools.ToolPage:
    """Fill the page; ``said`` is which agents are looked for. Raises errors.NotFound."""
    stored = found.catalog
    tool = stored.tools.get(key)
    if tool is None:
        raise errors.NotFound("tool", key, stored.tools)
    prefix, name = model.split(key)
    state, word, trouble = pages.standing(holdings.closed(stored).get(key))
    having = [holder for holder in found.holders if key in holder.active]
    shown = paging.named(found.holders, said["agents"])
    holders = paging.part([one for one in shown if key in one.active], said["offset"])
    others = paging.part([one for one in shown if key not in one.active], said["others_offset"])
    taken = list(itertools.islice(arguments.listed(tool.input_schema), arguments.MOST + 1))
    return tools.ToolPage(
        key=key,
        prefix=prefix,
        name=name,
        title=texts.visible(tool.title),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        plugin=tool.plugin,
        category=stored.category(tool),
        marks=tuple(_marks(tool)),
        toolkits=pages.in_toolkits(stored, key),
        tokens=words.number(tool.tokens),
        users=f"{words.number(len(having))} of {words.number(len(found.holders))}",
        state=state,
        word=word,
        trouble=trouble,
        description=texts.text(tool.description) if tool.description.strip() else None,
        arguments=tuple(taken[: arguments.MOST]),
        more_arguments=max(0, len(taken) - arguments.MOST),
        hints=", ".join(_hints(tool)),
        schema=_document(tool.input_schema),
        output_schema=_document(tool.output_schema) if tool.output_schema else "",
        policy=tool.policy.strip() if key not in stored.toolkits_of else "",
        holders=tuple(_holding(holder, key) for holder in holders.items),
        holders_pages=holders.pages(said, path, anchor="#holders"),
        others=tuple(_holding(holder, key) for holder in others.items),
        others_total=others.total,
        others_pages=others.pages(said, path, name="others_offset", anchor="#holders"),
        others_open=not holders.total or bool(said["others_offset"]),
        find=paging.find_agents(found.holders, said, path, ("offset", "others_offset")),
        usage=_usage(usage.by_tool(tool=key), key) if may_see_calls else None,
        stop=stop(tool),
        admin_url=admin_url,
        notice=notice,
        may_stop=may_stop,
        here=here,
    )


def stop(tool: catalog.Tool) -> pieces.Stop:
    """Fill the emergency stop."""
    return pieces.Stop(
        key=tool.key,
        url=reverse("web:stop_tool", args=[tool.key]),
        on=tool.blocked,
        about="Denies it to everyone at once, whatever any agent is set to.",
    )


def _holding(holder: holdings.Holder, key: str) -> tools.Holding:
    decision = holder.decision(key)
    agent = holder.agent.key
    filtered = urlencode({"q": key})
    return tools.Holding(
        agent=agent,
        url=f"{reverse('web:agent_access', args=[agent])}?{filtered}",
        state=decision.state,
        word=decision.state.capitalize(),
        reason=reasons.in_words(decision),
    )


def _marks(tool: catalog.Tool) -> Iterator[access.Mark]:
    if tool.default_on:
        yield access.Mark(word="on by default", tone="accent")
    if tool.retired:
        yield access.Mark(word="retired", tone="warning")


def _hints(tool: catalog.Tool) -> Iterator[str]:
    said = schema.mapping(tool.annotations, {})
    for name, (yes, no) in _HINTS.items():
        if isinstance(said.get(name), bool):
            yield yes if said[name] else no


def _usage(found: Iterable[usage.OfTool], key: str) -> tools.Usage:
    url = f"{reverse('web:calls')}?{urlencode({'tool': key})}"
    one = next(iter(found), None)
    if one is None:
        return tools.Usage(words="no call is on record", url="")
    errors_in = f", {words.number(one.errors)} with an error" if one.errors else ""
    last = words.moment(one.last).words
    return tools.Usage(
        words=f"{words.number(one.calls)} call{'' if one.calls == 1 else 's'}{errors_in}, last {last}",
        url=url,
    )


def _document(text: str) -> str:
    document = json.dumps(schema.mapping(text, schema.EMPTY), indent=2, ensure_ascii=False)
    # As every text of a stranger: characters that nobody would see are named.
    return "\n".join(map(texts.visible, document.split("\n")))
