"""Print the address of the first PostgreSQL server that tests can use, or why there is none.

Tests create their own database on it, and drop it.
"""

import os
import sys

import psycopg

USUAL = ("postgres://127.0.0.1:5432/toolbelt", "postgres://postgres:postgres@127.0.0.1:5432/toolbelt")


def main() -> int:
    given = os.environ.get("TEST_DATABASE_URL")
    reasons = []
    for url in (given,) if given else USUAL:
        try:
            # The database that is always there: the one in the address need not be.
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
