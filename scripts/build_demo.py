"""Check the complete demo belt (`toolbelt.demo.belt`).

Writes it as JSON (which is YAML too) to standard output and every problem to standard error; exits 1 if there is one.

    python -m scripts.build_demo > demo-belt.json
"""

import json
import sys
from collections.abc import Iterator

from toolbelt.core import belts, keys
from toolbelt.demo import belt as demo

MIN_MEMBERS, MAX_MEMBERS = 3, 20


def problems(belt: demo.Entry) -> Iterator[str]:
    """Return the problems that any belt may have, and those that make this one a bad example."""
    yield from (str(problem) for problem in belts.check(belt))
    toolkits = {toolkit["key"]: toolkit for toolkit in belt["toolkits"]}
    named = [plugin["name"] for plugin in belt["plugins"]]
    # All three can be given to load_tools: one name should mean one thing.
    for name in sorted(
        {keys.fold(n) for n in named} & {keys.fold(e["key"]) for e in belt["tools"] + belt["toolkits"]}
    ):
        yield f"plugins.{name}: a tool or toolkit has this name too"
    for key, toolkit in toolkits.items():
        members = [member if isinstance(member, str) else member["tool"] for member in toolkit["members"]]
        # Code decides the members of its toolkits.
        if not toolkit.get("plugin") and not MIN_MEMBERS <= len(members) <= MAX_MEMBERS:
            yield f"toolkits.{key}.members: {len(members)} of them"
        spoken_of = [("tool_notes", toolkit.get("tool_notes", {}))]
        spoken_of += [
            (f"triggers.{t['name']}.focus", t.get("focus", [])) for t in toolkit.get("triggers", [])
        ]
        for place, tools in spoken_of:
            yield from (
                f"toolkits.{key}.{place}: {tool} is not a member" for tool in tools if tool not in members
            )
        yield from (
            f"toolkits.{key}.{field}: missing"
            for field in ("title", "description", "policy")
            # Code writes the policy of its toolkits when it is asked for.
            if not toolkit.get(field) and not (field == "policy" and toolkit.get("plugin"))
        )


def main() -> int:
    belt = demo.build()
    found = list(problems(belt))
    sys.stderr.writelines(f"{problem}\n" for problem in found)
    json.dump(belt, sys.stdout, ensure_ascii=False, indent=1)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
