"""Check the complete demo belt (`toolbelt.demo.belt`).

Writes it as JSON, which is also YAML, to standard output, and problems to standard error. Exits with 1 if it has any.

    python -m scripts.build_demo > demo-belt.json
"""

import json
import sys
from collections.abc import Iterator

from toolbelt.core import belts, keys
from toolbelt.demo import belt as demo

MIN_MEMBERS, MAX_MEMBERS = 3, 20


def problems(belt: demo.Entry) -> Iterator[str]:
    """Yield the problems that any belt may have, and those that make this one a bad example."""
    yield from (str(problem) for problem in belts.check(belt))
    toolkits = {toolkit["key"]: toolkit for toolkit in belt["toolkits"]}
    plugin_names = [plugin["name"] for plugin in belt["plugins"]]
    # load_tools takes names of plugins, tools and toolkits, so a name should be unique among them.
    for name in sorted(
        {keys.fold(n) for n in plugin_names} & {keys.fold(e["key"]) for e in belt["tools"] + belt["toolkits"]}
    ):
        yield f"plugins.{name}: a tool or toolkit also has this name"
    for key, toolkit in toolkits.items():
        members = [member if isinstance(member, str) else member["tool"] for member in toolkit["members"]]
        # Code defines the members of its toolkits.
        if not toolkit.get("plugin") and not MIN_MEMBERS <= len(members) <= MAX_MEMBERS:
            yield f"toolkits.{key}.members: there are {len(members)}, not {MIN_MEMBERS} to {MAX_MEMBERS}"
        references = [("tool_notes", toolkit.get("tool_notes", {}))]
        references += [
            (f"triggers.{t['name']}.focus", t.get("focus", [])) for t in toolkit.get("triggers", [])
        ]
        for field_name, tools in references:
            yield from (
                f"toolkits.{key}.{field_name}: {tool} is not a member"
                for tool in tools
                if tool not in members
            )
        yield from (
            f"toolkits.{key}.{field}: missing"
            for field in ("title", "description", "policy")
            # Code generates the policies of its toolkits on request.
            if not toolkit.get(field) and not (field == "policy" and toolkit.get("plugin"))
        )


def main() -> int:
    belt = demo.build()
    found_problems = list(problems(belt))
    sys.stderr.writelines(f"{problem}\n" for problem in found_problems)
    json.dump(belt, sys.stdout, ensure_ascii=False, indent=1)
    return 1 if found_problems else 0


if __name__ == "__main__":
    sys.exit(main())
