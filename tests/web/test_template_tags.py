"""Tests that the optimized template tags for long pages render the same output as Django's own."""

from __future__ import annotations

from typing import Any

import pytest
from django import template, urls
from django.template import engines
from django.utils.safestring import mark_safe


def rendered(source: str, **values: Any) -> str:
    return str(engines["django"].from_string(source).render(values))


class CountedText:
    """A text that counts how often it is rendered."""

    def __init__(self, word: str) -> None:
        self.word, self.renders = word, 0

    def __str__(self) -> str:
        self.renders += 1
        return self.word


def test_render_once_renders_equal_values_once_per_page() -> None:
    value = CountedText("same")
    source = (
        "{% for n in rows %}{{ n }}{% render_once value=value %}<{{ value }}>{% endrender_once %}{% endfor %}"
    )
    assert rendered(source, rows="abc", value=value) == "a<same>b<same>c<same>"
    assert value.renders == 1
    rendered(source, rows="abc", value=value)
    assert value.renders == 2, "each page renders it again"


def test_render_once_renders_each_different_value() -> None:
    source = "{% for risk in rows %}{% render_once risk=risk %}<{{ risk }}>{% endrender_once %}{% endfor %}"
    assert rendered(source, rows=("writes", "writes", "read-only")) == "<writes><writes><read-only>"


def test_render_once_distinguishes_safe_and_unsafe_text() -> None:
    source = "{% for text in rows %}{% render_once text=text %}{{ text }}{% endrender_once %}{% endfor %}"
    assert rendered(source, rows=[mark_safe("<b>"), "<b>"]) == "<b>&lt;b&gt;"
    assert rendered(source, rows=[1, True]) == "1True"


def test_render_once_blocks_do_not_share_output() -> None:
    source = (
        "{% render_once n=n %}<{{ n }}>{% endrender_once %}{% render_once n=n %}[{{ n }}]{% endrender_once %}"
    )
    assert rendered(source, n=1) == "<1>[1]"


def test_render_once_sees_only_its_named_variables() -> None:
    source = "{% for n in rows %}{% render_once a=a %}[{{ a }}{{ n }}{{ b }}]{% endrender_once %}{% endfor %}"
    assert rendered(source, rows="xy", a="a", b="b") == "[a][a]"


def test_render_once_provides_the_csrf_token() -> None:
    html = rendered("{% render_once %}{% csrf_token %}{% endrender_once %}", csrf_token="t0ken")
    assert 'value="t0ken"' in html


def test_render_once_works_with_includes() -> None:
    value = CountedText("<40")
    inside = "{% render_once percent=value %}{% include '_bar.html' %}{% endrender_once %}"
    source = f"{{% for n in rows %}}{inside}{{% endfor %}}"
    assert rendered(source, rows="ab", value=value).count("<svg") == 2


@pytest.mark.parametrize("key", ["plain", "a b", "ü", "a%b", 'a"<b>&c', "it's", "a:b@c~d+e", "…"])
def test_address_returns_the_same_url_as_django(key: str) -> None:
    for source in (
        "{% address 'web:override' agent key %}",
        "{% address 'web:override' agent key as act %}{{ act }}",
    ):
        expected = rendered(source.replace("address", "url"), agent="a&d a", key=key)
        assert rendered(source, agent="a&d a", key=key) == expected
    assert rendered("{% address 'web:tool' key %}", key=key) == rendered("{% url 'web:tool' key %}", key=key)


def test_address_distinguishes_views_and_agents() -> None:
    source = "{% for view in views %}{% for agent in agents %}{% address view agent 'x' %} {% endfor %}{% endfor %}"
    views, agents = ("web:override", "web:switch"), ("ada", "bob")
    assert rendered(source, views=views, agents=agents).split() == [
        urls.reverse(view, args=[agent, "x"]) for view in views for agent in agents
    ]


def test_address_quotes_slashes_in_names() -> None:
    assert rendered("{% address 'web:tool' key %}", key="../agents") == "/tools/..%2Fagents/"


def test_address_of_an_unknown_view_raises_an_error() -> None:
    with pytest.raises(urls.NoReverseMatch):
        rendered("{% address 'web:nothing' 'x' %}")


def test_part_renders_like_djangos_include() -> None:
    tool, other = {"name": "git__log", "tokens": 1}, {"name": "git__show", "tokens": 2}
    for values in ("", "with tool=other"):
        part, include = (
            rendered(f"{{% {tag} 'agents/_size.html' {values} %}}", tool=tool, other=other, percent=3)
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
def test_invalid_tags_raise_a_syntax_error(source: str) -> None:
    with pytest.raises(template.TemplateSyntaxError):
        rendered(source)
