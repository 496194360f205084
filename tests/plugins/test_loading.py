"""Loading: listed plugins run, installed ones that are not listed are shown, and a broken one harms no other."""

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
def place(tmp_path, monkeypatch):
    """A directory that modules are imported from, with the seed's plugin in it."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_tool_plugin.py").write_text(samples.SEED)
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def load(place: Path, text: str, *offered: loading.Installed, **more: object) -> loading.Loaded:
    path = place / "plugins.yaml"
    path.write_text(textwrap.dedent(text))
    return loading.load(path, environ={"MY_TOOL_API_KEY": "k"}, offered=offered, **more)  # type: ignore[arg-type]


def states(loaded: loading.Loaded) -> dict[str, str]:
    return {info.name: info.state for info in loaded.registry.list_plugins()}


def module(place: Path, name: str, text: str) -> None:
    (place / f"{name}.py").write_text(textwrap.dedent(text))
    importlib.invalidate_caches()


def test_the_seeds_first_configuration_runs_as_it_is_written(place):
    loaded = load(
        place,
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
    assert info.source == f"my_tool_plugin:MyToolPlugin, {place / 'plugins.yaml'}:2"
    loaded.registry.shutdown_sync()


@pytest.mark.parametrize("name", ["my_tool", "my-tool", "My.Tool", "my-tool-plugin", "my_tool_plugin"])
def test_an_installed_plugin_is_found_by_the_name_of_entry_point_distribution_or_module(place, name):
    loaded = load(place, f'tool_plugins:\n- id: "{name}"\n', MY_TOOL)

    assert loaded.problems == ()
    assert loaded.available == ()
    assert states(loaded) == {"my-tool-plugin": "registered"}


def test_the_name_of_an_entry_point_comes_before_other_names(place):
    other = loading.Installed(name="other", module="no_such", attribute="X", distribution="my_tool")

    loaded = load(place, "tool_plugins:\n- id: my_tool\n", other, MY_TOOL)

    assert loaded.problems == ()
    assert loaded.available == (other,)


def test_what_is_installed_and_not_listed_is_available_and_not_imported(place):
    module(place, "loud_plugin", "raise SystemExit('imported')")
    loud = loading.Installed(name="loud", module="loud_plugin", attribute="Loud", distribution="loud")

    loaded = load(place, "tool_plugins:\n- id: my_tool\n", MY_TOOL, loud)

    assert loaded.available == (loud,)
    assert "loud_plugin" not in sys.modules


def test_a_plugin_that_is_listed_by_its_class_is_not_available_besides(place):
    text = "tool_plugins:\n- module: my_tool_plugin\n  class_name: MyToolPlugin\n"

    assert load(place, text, MY_TOOL).available == ()


def test_without_a_file_nothing_is_loaded_and_all_is_available():
    loaded = loading.load(None, offered=[MY_TOOL])

    assert loaded.available == (MY_TOOL,)
    assert loaded.problems == ()
    assert loaded.registry.list_plugins() == []


def test_plugins_are_loaded_into_a_registry_that_holds_others(place, registry):
    registry.register(samples.Sample())

    loaded = load(place, "tool_plugins:\n- id: my_tool\n", MY_TOOL, into=registry)

    assert loaded.registry is registry
    assert list(states(loaded)) == ["knowledge", "my-tool-plugin"]


def test_an_instance_serves_as_well_as_a_class(place):
    module(
        place,
        "functions_plugin",
        """\
        from toolbelt import FunctionPlugin

        def add(a: int, b: int) -> int:
            "Add."
            return a + b

        plugin = FunctionPlugin(name="sums", namespace="sums", functions=[add])
        """,
    )

    loaded = load(place, "tool_plugins:\n- {module: functions_plugin, class_name: plugin}\n")

    assert loaded.registry.execute_sync("sums__add", {"a": 1, "b": 2}) == 3
    loaded.registry.shutdown_sync()


def test_an_installed_distribution_offers_its_plugin_by_the_entry_point_group(place):
    info = place / "my_tool-1.0.dist-info"
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
def test_a_module_that_is_broken_is_a_failed_plugin_with_its_error_and_the_rest_runs(place, text, error):
    (place / "broken.py").write_text(text)
    importlib.invalidate_caches()

    loaded = load(
        place,
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


def test_a_plugin_that_is_not_installed_is_a_problem_with_the_nearest_name(place):
    loaded = load(place, "tool_plugins:\n- id: my_tol\n- id: quite-other\n", MY_TOOL)

    near, far = (problem.message for problem in loaded.problems)
    assert near == "No plugin 'my_tol' is installed. Did you mean my_tool?"
    assert far == "No plugin 'quite-other' is installed. Install it, or name its 'module' and 'class_name'."
    assert loaded.available == (MY_TOOL,)


def test_a_name_that_two_distributions_offer_is_a_problem_that_names_both(place):
    other = loading.Installed(name="my_tool", module="other", attribute="Other", distribution="other-tool")

    [problem] = load(place, "tool_plugins:\n- id: my_tool\n", MY_TOOL, other).problems

    assert "my_tool of my-tool, my_tool of other-tool" in problem.message


def test_an_entry_with_problems_is_shown_as_failed_and_the_rest_runs(place):
    loaded = load(
        place,
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
    assert failed.source == f"{place / 'plugins.yaml'}:2"


def test_a_plugin_that_is_listed_twice_is_not_taken_for_the_one_that_failed(place):
    loaded = load(place, "tool_plugins:\n- id: my-tool-plugin\n- id: my-tool-plugin\n", MY_TOOL)

    assert states(loaded) == {"my-tool-plugin": "registered", f"{place / 'plugins.yaml'}:3": "failed"}


def test_two_entries_with_one_namespace_are_refused_with_both_lines(place):
    text = "tool_plugins:\n- id: my_tool\n- {id: again, module: my_tool_plugin, class_name: MyToolPlugin}\n"

    loaded = load(place, text, MY_TOOL)

    assert {problem.line for problem in loaded.problems} == {3}
    said = str(loaded.problems[0])
    assert "plugins.yaml:2)" in said
    assert "plugins.yaml:3)" in said
    assert states(loaded) == {"my-tool-plugin": "registered", "again": "failed"}


def test_a_file_that_cannot_be_read_is_a_problem_and_no_more(tmp_path):
    loaded = loading.load(tmp_path / "none.yaml", offered=[MY_TOOL])

    assert len(loaded.problems) == 1
    assert isinstance(loaded.registry, registries.ToolPluginRegistry)
    assert loaded.available == (MY_TOOL,)


def test_the_process_has_the_variables_where_none_are_given(place, monkeypatch):
    monkeypatch.setenv("TOOLBELT_TEST_KEY", "from-here")
    path = place / "plugins.yaml"
    path.write_text("tool_plugins:\n- id: my_tool\n  config: {api_key: '${TOOLBELT_TEST_KEY}'}\n")

    loaded = loading.load(path, offered=[MY_TOOL])
    loaded.registry.initialize_sync()

    plugin = loaded.registry.resolve_tool("mytool__search")
    assert plugin.api_key == "from-here"  # type: ignore[union-attr]
    loaded.registry.shutdown_sync()
