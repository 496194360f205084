"""Tests that the template tags for pages with hundreds of rows print what Django's own would."""

from __future__ import annotations

from typing import Any

import pytest
from django import template, urls
from django.template import engines
from django.utils.safestring import mark_safe

from toolbelt.web.kit import tool_sections

RISKS = (
    tool_sections.Risk(word="writes"),
    tool_sections.Risk(word="writes"),
    tool_sections.Risk(word="read-only"),
)


def rendered(source: str, **values: Any) -> str:
    return str(engines["django"].from_string(source).render(values))


class Told:
    """Counts how often it is asked."""

    def __init__(self, word: str) -> None:
        self.word, self.asked = word, 0

    def __str__(self) -> str:
        self.asked += 1
        return self.word


def test_what_is_alike_is_rendered_once_and_stands_wherever_it_is_wanted() -> None:
    told = Told("same")
    source = (
        "{% for n in rows %}{{ n }}{% render_once told=told %}<{{ told }}>{% endrender_once %}{% endfor %}"
    )
    assert rendered(source, rows="abc", told=told) == "a<same>b<same>c<same>"
    assert told.asked == 1
    rendered(source, rows="abc", told=told)
    assert told.asked == 2, "another page begins anew"


def test_what_differs_is_rendered_for_each() -> None:
    source = (
        "{% for risk in rows %}{% render_once risk=risk %}<{{ risk.word }}>{% endrender_once %}{% endfor %}"
    )
    assert rendered(source, rows=RISKS) == "<writes><writes><read-only>"


def test_a_text_that_is_html_is_not_taken_for_one_that_is_none() -> None:
    source = "{% for text in rows %}{% render_once text=text %}{{ text }}{% endrender_once %}{% endfor %}"
    assert rendered(source, rows=[mark_safe("<b>"), "<b>"]) == "<b>&lt;b&gt;"
    assert rendered(source, rows=[1, True]) == "1True"


def test_two_places_that_show_the_same_value_show_it_each_in_its_way() -> None:
    source = (
        "{% render_once n=n %}<{{ n }}>{% endrender_once %}{% render_once n=n %}[{{ n }}]{% endrender_once %}"
    )
    assert rendered(source, n=1) == "<1>[1]"


def test_inside_nothing_is_known_but_what_was_named() -> None:
    source = "{% for n in rows %}{% render_once a=a %}[{{ a }}{{ n }}{{ b }}]{% endrender_once %}{% endfor %}"
    assert rendered(source, rows="xy", a="a", b="b") == "[a][a]"


def test_inside_forms_have_their_token() -> None:
    html = rendered("{% render_once %}{% csrf_token %}{% endrender_once %}", csrf_token="t0ken")
    assert 'value="t0ken"' in html


def test_it_holds_across_parts_and_includes() -> None:
    told = Told("<40")
    inside = "{% render_once percent=told %}{% include '_bar.html' %}{% endrender_once %}"
    source = f"{{% for n in rows %}}{inside}{{% endfor %}}"
    assert rendered(source, rows="ab", told=told).count("<svg") == 2


@pytest.mark.parametrize("key", ["plain", "a b", "ü", "a%b", 'a"<b>&c', "it's", "a:b@c~d+e", "…"])
def test_an_address_is_the_one_that_django_gives(key: str) -> None:
    for source in (
        "{% address 'web:override' agent key %}",
        "{% address 'web:override' agent key as act %}{{ act }}",
    ):
        wanted = rendered(source.replace("address", "url"), agent="a&d a", key=key)
        assert rendered(source, agent="a&d a", key=key) == wanted
    assert rendered("{% address 'web:tool' key %}", key=key) == rendered("{% url 'web:tool' key %}", key=key)


def test_addresses_of_several_views_and_agents_are_not_confused() -> None:
    source = "{% for view in views %}{% for agent in agents %}{% address view agent 'x' %} {% endfor %}{% endfor %}"
    views, agents = ("web:override", "web:switch"), ("ada", "bob")
    assert rendered(source, views=views, agents=agents).split() == [
        urls.reverse(view, args=[agent, "x"]) for view in views for agent in agents
    ]


def test_a_slash_in_a_name_leads_nowhere_else() -> None:
    assert rendered("{% address 'web:tool' key %}", key="../agents") == "/tools/..%2Fagents/"


def test_a_view_that_is_not_there_is_an_error() -> None:
    with pytest.raises(urls.NoReverseMatch):
        rendered("{% address 'web:nothing' 'x' %}")


def test_a_part_knows_what_is_around_it_and_what_it_is_given() -> None:
    size = {"key": "git__log", "tokens": 1, "percent": 3}
    for values in ("", "with size=other"):
        part, include = (
            rendered(
                f"{{% {tag} 'agents/_size.html' {values} %}}", size=size, other={**size, "key": "git__show"}
            )
            for tag in ("part", "include")
        )
        assert part == include
    assert rendered("{% part '_bar.html' with percent=3 %}{{ percent }}") == rendered(
        "{% include '_bar.html' with percent=3 %}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{% render_once a %}{% endrender_once %}",
        "{% address 'web:tool' %}",
        "{% part '_bar.html' percent=3 %}",
        "{% render_once %}",
    ],
)
def test_what_cannot_be_meant_is_refused(source: str) -> None:
    with pytest.raises(template.TemplateSyntaxError):
        rendered(source)
