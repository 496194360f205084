"""Generate fixtures/demo.yaml from the demo's belt. (`make fixture`)

The belt is imported into a scratch database through `control`, which validates it and counts every tool's tokens, and
is then dumped with natural keys, for `loaddata`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE / "fixtures/demo.yaml"
# Models whose rows are created at runtime, not configured by operators.
EXCLUDED = ("auditentry", "agentsession", "revision", "agentrevision", "listing")
# Errors of plugins, which are stored by the process that finds them.
ERRORS = {
    "github_archived": "Its server exited with code 1: this package is archived, use github/github-mcp-server."
}


def main() -> int:
    """Build the fixture."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TOOLBELT_ENV"] = "test"
        os.environ["TOOLBELT_ENV_FILE"] = os.devnull
        os.environ["DATABASE_URL"] = f"sqlite:///{scratch}/demo.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "toolbelt.settings"
        import django

        django.setup()
        from django.core.management import call_command

        from toolbelt.control import writing
        from toolbelt.control.config import belts
        from toolbelt.control.servers import client_plugins
        from toolbelt.demo import belt
        from toolbelt.management import demo_today
        from toolbelt.store import plugins

        call_command("migrate", verbosity=0)
        demo = writing.by("demo", via="import")
        imported = belts.import_(demo, belt.build(), is_state=True)
        # Declare the tools, so that their approved versions are those of the program.
        client_plugins.declare(demo, demo_today.PLUGIN, client_plugins.declared(demo_today.PLUGIN))
        for name, error in ERRORS.items():
            plugins.set_error(name, error)
        call_command(
            "dumpdata",
            "toolbelt",
            natural_foreign=True,
            natural_primary=True,
            exclude=[f"toolbelt.{model}" for model in EXCLUDED],
            format="yaml",
            output=str(TARGET),
            verbosity=0,
        )
    print(f"{TARGET.relative_to(HERE)}: {imported.created} entries, {TARGET.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
