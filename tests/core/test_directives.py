"""Tests of directives: word boundaries in every script, triggers, and merging."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import catalog, directives, policy


def fires(message: str, **trigger: Any) -> bool:
    return directives.matches(catalog.Trigger(name="t", **trigger), message.encode(errors="replace"))


@pytest.mark.parametrize(
    ("pattern", "message", "is_match"),
    [
        ("fix", "please fix it", True),
        ("fix", "FIX", True),
        ("fix", "prefix", False),
        ("fix", "fixed", False),
        ("fix", "fix_it", False),
        ("fix", "fix2", False),
        ("fix", "(fix)", True),
        ("fix", "fix.", True),
        ("fix", "hot-fix", True),
        ("fix", "a\nfix\nb", True),
        ("fix", "", False),
        ("fix|add", "prefix add", True),
        ("fix|add", "address", False),
        ("deploy(ment)? status", "the Deployment Status?", True),
        ("is the build (ready|done)", "is the build readymade", True),
        ("caf", "café", False),
        ("caf", "cafe\u0301", False),
        ("café", "un CAFÉ noir", True),
        ("café", "cafés", False),
        ("naïve", "naïve", True),
        ("你好", "他说你好吗", True),
        ("hello", "你hello好", True),
        ("修复", "请修复bug", True),
        ("bug", "请修复bug吧", True),
        ("デプロイ", "早くデプロイして", True),
        ("サーバー", "サーバー2台", True),
        ("ก", "กข", True),
        ("деплой", "деплойте", False),
        ("деплой", "запусти ДЕПЛОЙ!", True),
        ("배포", "배포 상태", True),
        (r"c\+\+", "use c++11", True),
        (r"c\+\+", "abc++", False),
        (r"\.py", "main.pyc", False),
        (r"\.py", "main.py", True),
        (r"#\d+", "see #12", True),
        ("^fix", "fix it", True),
        ("^fix", "do fix it", False),
        ("now$", "do it now", True),
        (".*", "anything", True),
        ("fix", "\ud800 fix", True),
    ],
)
def test_a_pattern_matches_at_word_boundaries_in_any_script(
    pattern: str, message: str, is_match: bool
) -> None:
    assert fires(message, any=(pattern,)) is is_match


@pytest.mark.parametrize(
    "pattern", ["(unclosed", "a)(b", "(?=x)", r"(a)\1", "c++", "*", "", "  ", r"\Qx", "\ud800"]
)
def test_a_pattern_that_re2_rejects_is_reported_and_matches_nothing(pattern: str) -> None:
    assert directives.pattern_problem(pattern) is not None
    assert not fires("(unclosed a)(b c++ x", any=(pattern,))
    assert fires("but the others do", any=(pattern, "others"))


def test_matching_a_pathological_pattern_takes_linear_time() -> None:
    start = time.process_time()
    fires("a" * 100_000, any=("(a+)+$", "(a|a)*b", "(.*a){20}"))
    assert time.process_time() - start < 2


def test_a_trigger_can_have_hundreds_of_patterns() -> None:
    patterns = tuple(f"word{number} (x|y)+[a-z]{{1,40}}" for number in range(400))
    assert fires("say word399 xyz", any=patterns)
    assert not fires("say word400 xyz", any=patterns)


@pytest.mark.parametrize(
    ("trigger", "message", "is_fired"),
    [
        ({"any": ("fix", "add")}, "add it", True),
        ({"any": ()}, "add it", False),
        ({"all": (("fix", "add"), ("code", "file"))}, "add a file", True),
        ({"all": (("fix", "add"), ("code", "file"))}, "add a line", False),
        ({"all": (("fix",), ())}, "fix it", False),
        ({"any": ("fix",), "all": (("code",),)}, "fix the code", True),
        ({"any": ("fix",), "all": (("code",),)}, "fix the test", False),
        ({"any": ("fix",), "none": ("later",)}, "fix it", True),
        ({"any": ("fix",), "none": ("later",)}, "fix it LATER", False),
        ({}, "anything", False),
        ({"none": ("later",)}, "anything", False),
    ],
)
def test_a_trigger_combines_any_all_and_none(trigger: dict[str, Any], message: str, is_fired: bool) -> None:
    assert fires(message, **trigger) is is_fired


def trigger(name: str, **fields: Any) -> catalog.Trigger:
    return catalog.Trigger(name=name, any=(name,), **fields)


def merged(toolkits: list[catalog.Toolkit], active: str, message: str | None) -> directives.Directive | None:
    keys = dict.fromkeys(active.split())
    stored = building.catalog_of("a b c d", toolkits=toolkits)
    return directives.build(stored, policy.active_members(stored, keys), keys, message)


@pytest.mark.parametrize("message", [None, "", "  \n", "nothing of note"])
def test_a_message_without_a_match_has_no_directive(message: str | None) -> None:
    assert merged([building.toolkit("kit", "a", triggers=(trigger("fix"),))], "a", message) is None


def test_the_focus_defaults_to_the_active_members() -> None:
    directive = merged([building.toolkit("kit", "b a c", triggers=(trigger("fix"),))], "a b", "fix")
    assert directive == directives.Directive(
        active_tools=("a", "b"), tool_choice="auto", because=(("kit", "fix"),)
    )


def test_the_focus_is_limited_to_active_tools_of_any_toolkit() -> None:
    kit = building.toolkit("kit", "a", triggers=(trigger("fix", focus=("d", "c", "b")),))
    directive = merged([kit], "a c d", "fix")
    assert directive is not None
    assert directive.active_tools == ("c", "d")


def test_the_first_matching_trigger_decides_for_its_toolkit() -> None:
    triggers = (trigger("add", focus=("b",)), trigger("fix", focus=("a",), tool_choice="required"))
    directive = merged([building.toolkit("kit", "a b", triggers=triggers)], "a b", "fix and add")
    assert directive is not None
    assert (directive.active_tools, directive.tool_choice) == (("b",), "auto")


def test_the_first_matching_trigger_decides_even_without_active_focus() -> None:
    triggers = (trigger("add", focus=("b",)), trigger("fix", focus=("a",)))
    assert merged([building.toolkit("kit", "a b", triggers=triggers)], "a", "fix and add") is None
    assert merged([building.toolkit("kit", "a", triggers=(trigger("fix", focus=()),))], "a", "fix") is None


def test_directives_are_merged_and_required_takes_precedence() -> None:
    kits = [
        building.toolkit("one", "a", triggers=(trigger("fix"),)),
        building.toolkit("two", "b", triggers=(trigger("fix", tool_choice="required"),)),
        building.toolkit("three", "c", triggers=(trigger("other", tool_choice="required"),)),
    ]
    directive = merged(kits, "a b c", "fix")
    assert directive is not None
    assert (directive.active_tools, directive.tool_choice) == (("a", "b"), "required")
    assert directive.because == (("one", "fix"), ("two", "fix"))


def test_a_toolkit_without_active_focus_does_not_require_a_tool() -> None:
    kits = [
        building.toolkit("one", "a", triggers=(trigger("fix"),)),
        building.toolkit("two", "b c", triggers=(trigger("fix", focus=("c",), tool_choice="required"),)),
    ]
    directive = merged(kits, "a b", "fix")
    assert directive is not None
    assert (directive.active_tools, directive.tool_choice) == (("a",), "auto")
    assert merged(kits[1:], "b", "fix") is None


def test_a_toolkit_without_an_active_member_has_no_directive() -> None:
    kit = building.toolkit("kit", "a", triggers=(trigger("fix", focus=("b",)),))
    assert merged([kit], "b", "fix") is None


def test_a_message_is_matched_only_up_to_the_length_limit() -> None:
    kit = building.toolkit("kit", "a", triggers=(trigger("fix"),))
    assert merged([kit], "a", "x " * (directives.MAX_MESSAGE_LENGTH // 2 - 2) + "fix") is not None
    assert merged([kit], "a", "x " * (directives.MAX_MESSAGE_LENGTH // 2) + "fix") is None
