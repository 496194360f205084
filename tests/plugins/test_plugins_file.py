"""Tests of the plugins file: its entries, and the file, line and key of every error in it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from toolbelt.plugins import plugins_file

ENVIRON = {"KEY": "k", "HOST": "example.org"}


def read(tmp_path: Path, text: str) -> plugins_file.PluginsFile:
    path = tmp_path / "plugins.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return plugins_file.read(path, ENVIRON)


def problems(tmp_path: Path, text: str) -> list[tuple[int | None, str, str]]:
    file = read(tmp_path, text)
    all_problems = [*file.problems, *(problem for entry in file.entries for problem in entry.problems)]
    assert all(problem.file == str(tmp_path / "plugins.yaml") for problem in all_problems)
    return [(problem.line, problem.path, problem.message) for problem in all_problems]


def test_both_forms_of_the_specification_are_read(tmp_path):
    file = read(
        tmp_path,
        """\
        tool_plugins:
          - id: "my-tool-plugin"
            module: "my_tool_plugin"
            class_name: "MyToolPlugin"
            config:
              api_key: "${KEY}"

          - id: "other"
        """,
    )

    first, second = file.entries
    assert not file.problems
    assert (first.id, first.module, first.class_name) == ("my-tool-plugin", "my_tool_plugin", "MyToolPlugin")
    assert (first.line, first.path, first.name) == (2, "tool_plugins[0]", "my-tool-plugin")
    assert first.config == {"api_key": "k"}
    assert (second.id, second.module, second.config, second.line) == ("other", "", {}, 8)


def test_config_can_be_any_json_with_variables_at_any_depth(tmp_path):
    file = read(
        tmp_path,
        """\
        tool_plugins:
        - id: kb
          config:
            url: https://${HOST}/api
            retries: 3
            strict: true
            nothing: null
            ratio: 0.5
            keys: [a, "${KEY}", {deep: "x${KEY}y"}]
            literal: "$${KEY}"
        """,
    )

    assert file.entries[0].config == {
        "url": "https://example.org/api",
        "retries": 3,
        "strict": True,
        "nothing": None,
        "ratio": 0.5,
        "keys": ["a", "k", {"deep": "xky"}],
        "literal": "${KEY}",
    }
    assert not file.entries[0].problems


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "tool_plugins:\n", "tool_plugins: []\n"])
def test_a_file_without_entries_is_valid(tmp_path, text):
    assert read(tmp_path, text) == plugins_file.PluginsFile()


def test_a_missing_variable_is_reported_with_file_line_and_key(tmp_path):
    file = read(
        tmp_path,
        """\
        tool_plugins:
          - id: kb
            config:
              servers:
                - url: fine
                - url: "https://x/${NO_SUCH_KEY}"
        """,
    )

    [problem] = file.entries[0].problems
    assert (problem.line, problem.path) == (6, "tool_plugins[0].config.servers[1].url")
    assert "'NO_SUCH_KEY' is not set" in problem.message
    assert str(problem).startswith(
        f"{tmp_path / 'plugins.yaml'}:6: tool_plugins[0].config.servers[1].url: The var"
    )


def test_values_of_variables_are_never_shown(tmp_path):
    path = tmp_path / "plugins.yaml"
    path.write_text("tool_plugins:\n- id: kb\n  config: {a: '${SECRET}${NO}', b: '${SECRET}'}\n")

    file = plugins_file.read(path, {"SECRET": "hush-hush"})

    assert file.entries[0].config["b"] == "hush-hush"
    assert "hush-hush" not in repr(file)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("- id: a", (1, ""), "This must be a mapping of tool_plugins, not a list."),
        ("plugins: []", (1, "plugins"), "not known here. Did you mean 'tool_plugins'?"),
        ("tool_plugins: {id: a}", (1, "tool_plugins"), "This must be a list, not a mapping."),
    ],
)
def test_a_file_with_the_wrong_structure_is_reported(tmp_path, text, where, message):
    [(line, path, reported)] = problems(tmp_path, text)

    assert (line, path) == where
    assert message in reported


@pytest.mark.parametrize(
    ("entry", "where", "message"),
    [
        ("a", (2, ""), "This must be a mapping of id, module, class_name, config, not text."),
        ("", (2, ""), "This must be a mapping of id, module, class_name, config, not null."),
        (
            "config: {}",
            (2, ""),
            "An entry needs the 'id' of an installed plugin, or 'module' and 'class_name'.",
        ),
        ("module: a", (2, ""), "An entry with 'module' needs 'class_name' too."),
        ("id: a\n  class_name: B", (2, ""), "An entry with 'class_name' needs 'module' too."),
        ("id: 5", (2, ".id"), "This must be text, not a number."),
        ("id: [a]", (2, ".id"), "This must be text, not a list."),
        ("id: ' '", (2, ".id"), "This must not be blank."),
        ("id: a\n  id: b", (3, ".id"), "The key 'id' is repeated. It is already on line 2."),
        ("id: a\n  clas_name: B", (3, ".clas_name"), "not known here. Did you mean 'class_name'?"),
        ("id: a\n  zzz: 1", (3, ".zzz"), "not known here. Known keys: id, module, class_name, config."),
        ("id: a\n  config: 5", (3, ".config"), "This must be a mapping, not a number."),
    ],
)
def test_an_invalid_entry_is_reported_with_line_and_key(tmp_path, entry, where, message):
    [(line, path, reported)] = problems(tmp_path, f"tool_plugins:\n- {entry}\n")

    assert (line, path) == (where[0], f"tool_plugins[0]{where[1]}")
    assert message in reported


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        ("5: x", "", "A key must be text, not a number. Put it in quotes."),
        ("<<: {a: 1}", "", "A key must be text, not a value of the kind 'merge'"),
        ("d: 2026-01-02", ".d", "a value of the kind 'timestamp'. Put it in quotes to make it text."),
        ("d: !thing x", ".d", "This cannot be a value of the kind '!thing'"),
        ("d: .inf", ".d", "'.inf' is not a number."),
        ("d: !!bool maybe", ".d", "'maybe' is not true or false."),
        ("d: !!int ''", ".d", "'' is not a number."),
        ("d: " + "1:" * 200 + "1.0", ".d", "1.0' is not a number."),
        ("d: &d [*d]", ".d[0]", "This contains itself."),
        ("d: [x, '${B C}']", ".d[1]", "'${B C}' is not a variable. Write ${NAME}"),
    ],
)
def test_an_invalid_config_is_reported_with_line_and_key(tmp_path, config, path, message):
    [(line, at, reported)] = problems(tmp_path, f"tool_plugins:\n- id: a\n  config:\n    {config}\n")

    assert (line, at) == (4, f"tool_plugins[0].config{path}")
    assert message in reported


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tool_plugins:\n  - id: a\n - id: b\n", 3),
        ("tool_plugins:\n- id: 'a\n", 3),
        ("tool_plugins:\n\t- id: a\n", 2),
        ("tool_plugins: []\n---\ntool_plugins: []\n", 2),
        ("tool_plugins:\n- id: *nobody\n", 2),
        ("tool_plugins:\n- id: 'a\x00'\n", 2),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(tmp_path, text, line):
    file = read(tmp_path, text)

    [problem] = file.problems
    assert (problem.line, problem.message[:17]) == (line, "This is not YAML:")
    assert not file.entries


def test_an_unquoted_variable_in_braces_is_reported_to_need_quotes(tmp_path):
    [problem] = read(tmp_path, "tool_plugins:\n- id: a\n  config: {key: ${KEY}}\n").problems

    assert problem.line == 3
    assert problem.message.endswith('A variable within { } must be in quotes: "${NAME}".')


def test_a_missing_file_is_reported_without_a_line(tmp_path):
    [problem] = plugins_file.read(tmp_path / "none.yaml", {}).problems

    assert str(problem) == f"{tmp_path / 'none.yaml'}: The file cannot be read: No such file or directory."


def test_a_file_that_is_not_utf_8_is_reported(tmp_path):
    path = tmp_path / "plugins.yaml"
    path.write_bytes(b"tool_plugins:\n- id: \xff\n")

    [problem] = plugins_file.read(path, {}).problems

    assert (problem.line, problem.message) == (2, "The file is not UTF-8 text.")


def test_a_file_that_is_nested_too_deeply_is_reported(tmp_path):
    [problem] = read(tmp_path, "tool_plugins: " + "[" * 1_000).problems

    assert "nested too deeply" in problem.message


def test_a_valid_entry_is_unaffected_by_an_invalid_entry(tmp_path):
    file = read(tmp_path, "tool_plugins:\n- id: 5\n- id: kb\nextra: 1\n")

    assert [bool(entry.problems) for entry in file.entries] == [True, False]
    assert [problem.line for problem in file.problems] == [4]
