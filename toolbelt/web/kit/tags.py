"""Template tags that make a page of hundreds of rows cheap.

``{% render_once %}`` renders its content once for equal values. ``{% address %}`` is ``{% url %}`` for addresses that
differ in their last part only, and ``{% part %}`` is ``{% include %}`` of a template with a literal name. What they
remember lasts for one response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from django import template, urls
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.utils.html import conditional_escape
from django.utils.http import RFC3986_SUBDELIMS
from django.utils.safestring import SafeString

register = template.Library()

# Stands for the last part of an address while the rest is computed. No name contains this character.
_PLACE = "\ue000"
_SAFE = RFC3986_SUBDELIMS + "~:@"


@register.tag
def render_once(parser: Parser, token: Token) -> RenderOnce:
    """Render what is inside once for equal values: ``{% render_once risk=row.risk %}…{% endrender_once %}``.

    Its content knows only these values, which must be hashable, and the token of forms.
    """
    name, *bits = token.split_contents()
    values = token_kwargs(bits, parser)
    if bits:
        raise template.TemplateSyntaxError(f"{{% {name} %}} takes name=value only, not {bits[0]!r}.")
    inside = parser.parse(("endrender_once",))
    parser.delete_first_token()
    return RenderOnce(values, inside)


class RenderOnce(template.Node):
    """The node of ``render_once``."""

    def __init__(self, values: Mapping[str, FilterExpression], nodelist: NodeList) -> None:
        self.values = tuple(values.items())
        self.nodelist = nodelist

    def render(self, context: template.Context) -> SafeString:
        """Return what was rendered for these values; the first time, render it."""
        values = [(name, expression.resolve(context)) for name, expression in self.values]
        known: dict[Any, SafeString] = _known(context, self)
        # With its type, which says whether a text is HTML already.
        key = tuple((value.__class__, value) for _, value in values)
        rendered = known.get(key)
        if rendered is None:
            token = {"csrf_token": context.get("csrf_token")}
            rendered = known[key] = self.nodelist.render(context.new({**token, **dict(values)}))
        return rendered


@register.tag
def address(parser: Parser, token: Token) -> Address:
    """Return an address, as ``{% url %}`` does: ``{% address "web:override" page.agent.key row.key as act %}``."""
    _, *bits = token.split_contents()
    name = ""
    if len(bits) > 2 and bits[-2] == "as":
        *bits, _, name = bits
    if len(bits) < 2:
        raise template.TemplateSyntaxError(
            "{% address %} takes the name of a view and what is in its address."
        )
    view, *parts = map(parser.compile_filter, bits)
    return Address(view, parts, name)


class Address(template.Node):
    """An address whose last part differs each time; everything before it is computed once."""

    def __init__(self, view: FilterExpression, parts: Sequence[FilterExpression], name: str) -> None:
        self.view, self.before, self.last, self.name = view, parts[:-1], parts[-1], name

    def render(self, context: template.Context) -> str:
        """Return the address, or let the name stand for it."""
        key = tuple(part.resolve(context) for part in (self.view, *self.before))
        known: dict[Any, Callable[[str], str]] = _known(context, self)
        around = known.get(key)
        if around is None:
            around = known[key] = ending(*key)
        url = around(str(self.last.resolve(context)))
        if self.name:
            context[self.name] = url
            return ""
        return conditional_escape(url)


@register.tag
def part(parser: Parser, token: Token) -> Part:
    """Include a template, as ``{% include %}`` does: ``{% part "access/_outcome.html" with row=row %}``.

    Without what an include does for templates that extend others or are chosen while rendering.
    """
    _, name, *bits = token.split_contents()
    if bits and bits.pop(0) != "with":
        raise template.TemplateSyntaxError("{% part %} takes a template, and values behind 'with'.")
    return Part(name[1:-1], token_kwargs(bits, parser))


class Part(template.Node):
    """The nodes of another template, rendered in its place."""

    def __init__(self, name: str, values: Mapping[str, FilterExpression]) -> None:
        self.name, self.values = name, tuple(values.items())

    def render(self, context: template.Context) -> SafeString:
        """Render the template with these values beside those that are there."""
        known = _known(context, self)
        nodes = known.get(self.name)
        if nodes is None:
            nodes = known[self.name] = context.template.engine.get_template(self.name).nodelist  # type: ignore[union-attr]
        if not self.values:
            return nodes.render(context)
        with context.push(**{name: value.resolve(context) for name, value in self.values}):
            return nodes.render(context)


def ending(view: str, *before: object) -> Callable[[str], str]:
    """Return a function that completes an address with its last part."""
    begins, ends = urls.reverse(view, args=[*before, _PLACE]).split(quote(_PLACE))
    # As Django writes a part of an address, but for "/", which none of these parts may hold.
    return lambda last: f"{begins}{quote(last, safe=_SAFE)}{ends}"


def _known(context: template.Context, node: template.Node) -> dict[Any, Any]:
    """Return the cache of a tag for one response, where Django's own ``include`` keeps its own."""
    kept: dict[Any, dict[Any, Any]] = context.render_context.dicts[0]  # type: ignore[assignment]
    return kept.setdefault(node, {})
