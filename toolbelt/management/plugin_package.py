"""The files of a new plugin's package: a working plugin with tests, to start from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template

from toolbelt.core import keys

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "Tools for agents: $name."
requires-python = ">=3.11"
# A plugin is installed beside Toolbelt. Do not list Toolbelt here: a package index may have another package of that
# name.
dependencies = []

[project.optional-dependencies]
test = ["pytest>=8"]

[project.entry-points."toolbelt.tool_plugins"]
$name = "$module:$class_name"

[tool.setuptools]
packages = ["$module"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_README = """\
# $name

A Toolbelt plugin with tools for agents. In your Toolbelt directory, with `$name` as the path of this package:

```console
$$ .venv/bin/python -m pip install -e '$name[test]'
$$ .venv/bin/python -m pytest $name
```

List it in the file that `TOOLBELT_PLUGINS_FILE` names, then sync its tools:

```yaml
tool_plugins:
  - id: $name
    config:
      greeting: Hello
```

```console
$$ .venv/bin/python manage.py plugins check
$$ .venv/bin/python manage.py plugins sync
$$ .venv/bin/python manage.py call AGENT ${namespace}__greet '{"who": "Ada"}'
```
"""

_CODE = '''\
"""The $name plugin: a tool that greets people."""

from __future__ import annotations

from typing import Any

from toolbelt import RuntimeAPI, ToolDefinition, ToolError, ToolPlugin


class $class_name(ToolPlugin):
    name = "$name"
    namespace = "$namespace"
    tools = (
        ToolDefinition(
            name="${namespace}__greet",
            description="Greet a person by name, and count the greetings.",
            input_schema={
                "type": "object",
                "properties": {"who": {"type": "string", "description": "The name."}},
                "required": ["who"],
                "additionalProperties": False,
            },
            annotations={"readOnlyHint": False, "destructiveHint": False},
        ),
    )

    async def initialize(self, runtime: RuntimeAPI) -> None:
        self.runtime = runtime
        # To read a secret: await runtime.secrets.retrieve(self.namespace, "api_key")
        self.greeting = runtime.config.get("greeting", "Hello")

    async def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        if tool_name != "${namespace}__greet":
            raise ValueError(f"Unknown tool: {tool_name}")
        if not args["who"].strip():
            # The model reads this message. Other exceptions are logged, and not shown to the model.
            raise ToolError("'who' is blank. Send the name of the person to greet.")
        count = await self.runtime.state.get("count", 0) + 1
        await self.runtime.state.set("count", count)
        return {"message": f"{self.greeting}, {args['who']}!", "count": count}
'''

_TEST = '''\
"""Tests of the $name plugin, in a registry with a runtime in memory."""

from collections.abc import Iterator

import pytest
from toolbelt import ToolError, ToolPluginRegistry

from $module import $class_name


@pytest.fixture
def registry() -> Iterator[ToolPluginRegistry]:
    registry = ToolPluginRegistry()
    registry.register($class_name(), config={"greeting": "Good day"})
    yield registry
    registry.shutdown_sync()


def test_it_greets_as_configured_and_counts(registry: ToolPluginRegistry) -> None:
    assert registry.execute_sync("${namespace}__greet", {"who": "Ada"}) == {"message": "Good day, Ada!", "count": 1}
    assert registry.execute_sync("${namespace}__greet", {"who": "Ada"})["count"] == 2


def test_it_refuses_a_blank_name(registry: ToolPluginRegistry) -> None:
    with pytest.raises(ToolError, match="blank"):
        registry.execute_sync("${namespace}__greet", {"who": " "})
'''


def files(name: str) -> Mapping[str, str]:
    """Return the contents of the package's files, by path."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    namespace = "_".join(parts).lower()
    words = {
        "name": name,
        "namespace": namespace,
        "module": f"toolbelt_{namespace}",
        "distribution": f"toolbelt-{'-'.join(parts).lower()}",
        "class_name": "".join(part[0].upper() + part[1:] for part in parts),
    }
    texts = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        f"{words['module']}/__init__.py": _CODE,
        f"tests/test_{namespace}.py": _TEST,
    }
    return {path: Template(text).substitute(words) for path, text in texts.items()}


def name_problem(name: str) -> str | None:
    """Return why a plugin cannot have this name, or None. Its class and its namespace are named after it."""
    if problem := keys.name_problem(name):
        return problem
    if not re.match(r"[A-Za-z]", name):
        return f"{name!r} does not begin with a letter. Choose a name that does: the class is named after it."
    return keys.namespace_problem(re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower())
