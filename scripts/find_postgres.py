"""Print the address of the first PostgreSQL server that tests can use, or the reason why there is none.

Tests create their own database on it, and drop it.
"""

import os
import sys

import psycopg

DEFAULTS = ("postgres://127.0.0.1:5432/toolbelt", "postgres://postgres:postgres@127.0.0.1:5432/toolbelt")


def main() -> int:
    configured = os.environ.get("TEST_DATABASE_URL")
    reasons = []
    for url in (configured,) if configured else DEFAULTS:
        try:
            # This database always exists; the one in the address may not.
            psycopg.connect(url, dbname="postgres", connect_timeout=3).close()
        except psycopg.OperationalError as error:
            reasons.append(str(error).splitlines()[0])
        else:
            print(url)
            return 0
    print(reasons[0], file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
