"""Template tags that make pages with hundreds of rows fast.

``{% render_once %}`` renders its content once for equal values. ``{% address %}`` is ``{% url %}`` for URLs that differ
in their last part only, and ``{% part %}`` is ``{% include %}`` of a template with a literal name. Their caches last
for one response.
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

# A placeholder for the last part of a URL while the rest is computed. No name contains this character.
_PLACEHOLDER = "\ue000"
_SAFE = RFC3986_SUBDELIMS + "~:@"


@register.tag
def render_once(parser: Parser, token: Token) -> RenderOnce:
    """Render the content once for equal values: ``{% render_once risk=row.risk %}…{% endrender_once %}``.

    The content can use only these values, which must be hashable, and the CSRF token.
    """
    name, *bits = token.split_contents()
    values = token_kwargs(bits, parser)
    if bits:
        raise template.TemplateSyntaxError(f"{{% {name} %}} takes name=value only, not {bits[0]!r}.")
    nodelist = parser.parse(("endrender_once",))
    parser.delete_first_token()
    return RenderOnce(values, nodelist)


class RenderOnce(template.Node):
    """The node of ``render_once``."""

    def __init__(self, values: Mapping[str, FilterExpression], nodelist: NodeList) -> None:
        self.values = tuple(values.items())
        self.nodelist = nodelist

    def render(self, context: template.Context) -> SafeString:
        """Return the cached content for these values, or render it."""
        values = [(name, expression.resolve(context)) for name, expression in self.values]
        cache: dict[Any, SafeString] = _cache(context, self)
        # With the type, because only a SafeString is HTML already.
        key = tuple((value.__class__, value) for _, value in values)
        rendered = cache.get(key)
        if rendered is None:
            token = {"csrf_token": context.get("csrf_token")}
            rendered = cache[key] = self.nodelist.render(context.new({**token, **dict(values)}))
        return rendered


@register.tag
def address(parser: Parser, token: Token) -> Address:
    """Return a URL, like ``{% url %}``: ``{% address "web:override" page.agent.key row.key as act %}``."""
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
    """A URL whose last part differs each time; everything before it is computed once."""

    def __init__(self, view: FilterExpression, parts: Sequence[FilterExpression], name: str) -> None:
        self.view, self.before, self.last, self.name = view, parts[:-1], parts[-1], name

    def render(self, context: template.Context) -> str:
        """Return the URL, or assign it to the name."""
        key = tuple(part.resolve(context) for part in (self.view, *self.before))
        cache: dict[Any, Callable[[str], str]] = _cache(context, self)
        build = cache.get(key)
        if build is None:
            build = cache[key] = address_builder(*key)
        url = build(str(self.last.resolve(context)))
        if self.name:
            context[self.name] = url
            return ""
        return conditional_escape(url)


@register.tag
def part(parser: Parser, token: Token) -> Part:
    """Include a template, like ``{% include %}``: ``{% part "access/_outcome.html" with row=row %}``.

    It does not support templates that extend others, or whose name is a variable.
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
        """Render the template with these values added to the context."""
        cache = _cache(context, self)
        nodes = cache.get(self.name)
        if nodes is None:
            nodes = cache[self.name] = context.template.engine.get_template(self.name).nodelist  # type: ignore[union-attr]
        if not self.values:
            return nodes.render(context)
        with context.push(**{name: value.resolve(context) for name, value in self.values}):
            return nodes.render(context)


def address_builder(view: str, *before: object) -> Callable[[str], str]:
    """Return a function that returns the URL with a last part."""
    prefix, suffix = urls.reverse(view, args=[*before, _PLACEHOLDER]).split(quote(_PLACEHOLDER))
    # Quoted as by Django, except "/", which none of these parts may contain.
    return lambda last: f"{prefix}{quote(last, safe=_SAFE)}{suffix}"


def _cache(context: template.Context, node: template.Node) -> dict[Any, Any]:
    """Return the cache of a tag for one response, in the place where ``{% include %}`` has its own."""
    caches: dict[Any, dict[Any, Any]] = context.render_context.dicts[0]  # type: ignore[assignment]
    return caches.setdefault(node, {})
