"""How does the demo's belt become fixtures/demo.yaml? (`make fixture`)

The belt is imported into a scratch database through the operators' door, so that everything in it was validated and
every tool's tokens were counted, and then dumped as rows by natural keys, for `loaddata`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE / "fixtures/demo.yaml"
# What runs make, not what operators configured.
LEFT_OUT = ("auditentry", "agentsession", "revision", "agentrevision")


def main() -> int:
    """Build the fixture anew."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TOOLBELT_ENV"] = "test"
        os.environ["TOOLBELT_ENV_FILE"] = os.devnull
        os.environ["DATABASE_URL"] = f"sqlite:///{scratch}/demo.sqlite3"
        os.environ["DJANGO_SETTINGS_MODULE"] = "toolbelt.settings"
        import django

        django.setup()
        from django.core.management import call_command

        from scripts import build_demo
        from toolbelt.control import actors, belts

        call_command("migrate", verbosity=0)
        done = belts.import_(actors.Actor(name="demo", via="import"), build_demo.build())
        call_command(
            "dumpdata",
            "toolbelt",
            natural_foreign=True,
            natural_primary=True,
            exclude=[f"toolbelt.{model}" for model in LEFT_OUT],
            format="yaml",
            output=str(TARGET),
            verbosity=0,
        )
    print(f"{TARGET.relative_to(HERE)}: {done.created} entries, {TARGET.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
