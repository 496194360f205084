"""How is the page of one tool filled: what a model is sent of it, and which agents have it?"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import holdings, usage
from toolbelt.core import catalog, errors, reasons, risks, schema
from toolbelt.web import words
from toolbelt.web.pages import arguments, model, sections, texts
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
    *,
    here: str,
    admin_url: str,
    notice: answers.Notice | None,
    may_see_calls: bool,
    may_stop: bool,
) -> tools.ToolPage:
    """Fill the page. Raises errors.NotFound."""
    stored = found.catalog
    tool = stored.tools.get(key)
    if tool is None:
        raise errors.NotFound("tool", key, stored.tools)
    prefix, name = model.split(key)
    state, word, trouble = pages.standing(holdings.closed(stored).get(key))
    held = [_holding(holder, key) for holder in found.holders]
    holders = tuple(one for one in held if one.state == "active")
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
        users=f"{words.number(len(holders))} of {words.number(len(held))}",
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
        holders=holders,
        others=tuple(one for one in held if one.state != "active"),
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
    decision = holder.resolved.decision(key)
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
