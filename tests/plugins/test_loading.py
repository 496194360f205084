"""Tests of loading: listed plugins run, others that are installed are available, and a broken one harms no other."""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

import pytest

from tests.plugins import samples
from toolbelt.plugins import loading
from toolbelt.plugins import registry as registries

MY_TOOL = loading.Installed(
    name="my_tool", module="my_tool_plugin", attribute="MyToolPlugin", distribution="my-tool"
)


@pytest.fixture
def import_path(tmp_path, monkeypatch):
    """Yield a directory on the import path, with the specification's plugin in it."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_tool_plugin.py").write_text(samples.SEED)
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def load(import_path: Path, text: str, *offered: loading.Installed, **options: object) -> loading.Loaded:
    path = import_path / "plugins.yaml"
    path.write_text(textwrap.dedent(text))
    return loading.load(path, environ={"MY_TOOL_API_KEY": "k"}, offered=offered, **options)  # type: ignore[arg-type]


def states(loaded: loading.Loaded) -> dict[str, str]:
    return {info.name: info.state for info in loaded.registry.list_plugins()}


def write_module(import_path: Path, name: str, text: str) -> None:
    (import_path / f"{name}.py").write_text(textwrap.dedent(text))
    importlib.invalidate_caches()


def test_the_specifications_first_configuration_runs_unchanged(import_path):
    loaded = load(
        import_path,
        """\
        tool_plugins:
          - id: "my-tool-plugin"
            module: "my_tool_plugin"
            class_name: "MyToolPlugin"
            config:
              api_key: "${MY_TOOL_API_KEY}"
        """,
    )

    assert loaded.problems == ()
    assert loaded.registry.execute_sync("mytool__search", {"query": "x"}) == {"results": [...]}
    [info] = loaded.registry.list_plugins()
    assert info.source == f"my_tool_plugin:MyToolPlugin, {import_path / 'plugins.yaml'}:2"
    loaded.registry.shutdown_sync()


@pytest.mark.parametrize("name", ["my_tool", "my-tool", "My.Tool", "my-tool-plugin", "my_tool_plugin"])
def test_a_plugin_is_found_by_entry_point_distribution_or_module_name(import_path, name):
    loaded = load(import_path, f'tool_plugins:\n- id: "{name}"\n', MY_TOOL)

    assert loaded.problems == ()
    assert loaded.available == ()
    assert states(loaded) == {"my-tool-plugin": "registered"}


def test_an_entry_point_name_takes_precedence_over_other_names(import_path):
    other = loading.Installed(name="other", module="no_such", attribute="X", distribution="my_tool")

    loaded = load(import_path, "tool_plugins:\n- id: my_tool\n", other, MY_TOOL)

    assert loaded.problems == ()
    assert loaded.available == (other,)


def test_an_installed_plugin_that_is_not_listed_is_available_but_not_imported(import_path):
    write_module(import_path, "loud_plugin", "raise SystemExit('imported')")
    loud = loading.Installed(name="loud", module="loud_plugin", attribute="Loud", distribution="loud")

    loaded = load(import_path, "tool_plugins:\n- id: my_tool\n", MY_TOOL, loud)

    assert loaded.available == (loud,)
    assert "loud_plugin" not in sys.modules


def test_a_plugin_listed_by_its_class_is_not_also_available(import_path):
    text = "tool_plugins:\n- module: my_tool_plugin\n  class_name: MyToolPlugin\n"

    assert load(import_path, text, MY_TOOL).available == ()


def test_without_a_file_all_installed_plugins_are_available_and_none_is_loaded():
    loaded = loading.load(None, offered=[MY_TOOL])

    assert loaded.available == (MY_TOOL,)
    assert loaded.problems == ()
    assert loaded.registry.list_plugins() == []


def test_plugins_can_be_loaded_into_a_registry_with_other_plugins(import_path, registry):
    registry.register(samples.Sample())

    loaded = load(import_path, "tool_plugins:\n- id: my_tool\n", MY_TOOL, into=registry)

    assert loaded.registry is registry
    assert list(states(loaded)) == ["knowledge", "my-tool-plugin"]


def test_an_instance_can_be_listed_instead_of_a_class(import_path):
    write_module(
        import_path,
        "functions_plugin",
        """\
        from toolbelt import FunctionPlugin

        def add(a: int, b: int) -> int:
            "Add."
            return a + b

        plugin = FunctionPlugin(name="sums", namespace="sums", functions=[add])
        """,
    )

    loaded = load(import_path, "tool_plugins:\n- {module: functions_plugin, class_name: plugin}\n")

    assert loaded.registry.execute_sync("sums__add", {"a": 1, "b": 2}) == 3
    loaded.registry.shutdown_sync()


def test_plugins_of_installed_distributions_are_found_by_entry_point_group(import_path):
    info = import_path / "my_tool-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tool\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toolbelt.tool_plugins]\nmy_tool = my_tool_plugin:MyToolPlugin\n")
    importlib.invalidate_caches()

    assert MY_TOOL in loading.installed()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise OSError('no disk')", "OSError: no disk"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("Broken = (", "SyntaxError: '(' was never closed"),
        ("", "AttributeError: module 'broken' has no attribute 'Broken'"),
        (
            "class Broken: ...",
            "TypeError: 'Broken' is neither a ToolPlugin nor has what a plugin needs: name, namespace, tools, execute",
        ),
        (
            "from toolbelt import ToolPlugin\nclass Broken(ToolPlugin): ...",
            "TypeError: Can't instantiate abstract",
        ),
        (
            samples.SEED
            + "\nclass Broken(MyToolPlugin):\n    def __init__(self):\n        raise KeyError('HOME')",
            "KeyError: 'HOME'",
        ),
    ],
)
def test_a_broken_module_becomes_a_failed_plugin_and_the_others_load(import_path, text, error):
    (import_path / "broken.py").write_text(text)
    importlib.invalidate_caches()

    loaded = load(
        import_path,
        """\
        tool_plugins:
        - id: broken
          module: broken
          class_name: Broken
        - id: my_tool
        """,
        MY_TOOL,
    )

    [problem] = loaded.problems
    assert (problem.line, problem.path) == (2, "tool_plugins[0]")
    assert f"broken:Broken cannot be loaded: {error}" in problem.message
    assert states(loaded) == {"broken": "failed", "my-tool-plugin": "registered"}
    assert error in loaded.registry.list_plugins()[0].error


def test_a_plugin_that_is_not_installed_is_reported_with_the_nearest_name(import_path):
    loaded = load(import_path, "tool_plugins:\n- id: my_tol\n- id: quite-other\n", MY_TOOL)

    near, far = (problem.message for problem in loaded.problems)
    assert near == "No plugin 'my_tol' is installed. Did you mean my_tool?"
    assert far == "No plugin 'quite-other' is installed. Install it, or name its 'module' and 'class_name'."
    assert loaded.available == (MY_TOOL,)


def test_a_name_offered_by_two_distributions_is_reported_with_both(import_path):
    other = loading.Installed(name="my_tool", module="other", attribute="Other", distribution="other-tool")

    [problem] = load(import_path, "tool_plugins:\n- id: my_tool\n", MY_TOOL, other).problems

    assert "my_tool of my-tool, my_tool of other-tool" in problem.message


def test_an_invalid_entry_becomes_a_failed_plugin_and_the_others_load(import_path):
    loaded = load(
        import_path,
        """\
        tool_plugins:
        - id: keyless
          module: my_tool_plugin
          class_name: MyToolPlugin
          config: {api_key: "${NO_SUCH_KEY}"}
        - id: my_tool
        extra: 1
        """,
        MY_TOOL,
    )

    assert [(problem.line, problem.path) for problem in loaded.problems] == [
        (7, "extra"),
        (5, "tool_plugins[0].config.api_key"),
    ]
    assert states(loaded) == {"keyless": "failed", "my-tool-plugin": "registered"}
    failed = loaded.registry.list_plugins()[0]
    assert "tool_plugins[0].config.api_key: The variable 'NO_SUCH_KEY' is not set" in failed.error
    assert failed.source == f"{import_path / 'plugins.yaml'}:2"


def test_a_plugin_listed_twice_fails_only_for_the_second_entry(import_path):
    loaded = load(import_path, "tool_plugins:\n- id: my-tool-plugin\n- id: my-tool-plugin\n", MY_TOOL)

    assert states(loaded) == {"my-tool-plugin": "registered", f"{import_path / 'plugins.yaml'}:3": "failed"}


def test_two_entries_with_the_same_namespace_are_reported_with_both_lines(import_path):
    text = "tool_plugins:\n- id: my_tool\n- {id: again, module: my_tool_plugin, class_name: MyToolPlugin}\n"

    loaded = load(import_path, text, MY_TOOL)

    assert {problem.line for problem in loaded.problems} == {3}
    message = str(loaded.problems[0])
    assert "plugins.yaml:2)" in message
    assert "plugins.yaml:3)" in message
    assert states(loaded) == {"my-tool-plugin": "registered", "again": "failed"}


def test_an_unreadable_file_is_reported_and_nothing_else_fails(tmp_path):
    loaded = loading.load(tmp_path / "none.yaml", offered=[MY_TOOL])

    assert len(loaded.problems) == 1
    assert isinstance(loaded.registry, registries.ToolPluginRegistry)
    assert loaded.available == (MY_TOOL,)


def test_variables_come_from_the_process_environment_by_default(import_path, monkeypatch):
    monkeypatch.setenv("TOOLBELT_TEST_KEY", "from-here")
    path = import_path / "plugins.yaml"
    path.write_text("tool_plugins:\n- id: my_tool\n  config: {api_key: '${TOOLBELT_TEST_KEY}'}\n")

    loaded = loading.load(path, offered=[MY_TOOL])
    loaded.registry.initialize_sync()

    plugin = loaded.registry.resolve_tool("mytool__search")
    assert plugin.api_key == "from-here"  # type: ignore[union-attr]
    loaded.registry.shutdown_sync()
