#!/bin/sh
# Run the long tests, which attack a running server or disconnect its database, on SQLite, and on PostgreSQL if a server
# responds (TEST_DATABASE_URL, or one on this machine).
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh dev

python=.venv/bin/python
. scripts/forget_settings.sh
export TOOLBELT_ENV=test
status=0

echo "==> Long tests on SQLite"
$python -m pytest -m soak tests || status=1
if url=$($python scripts/find_postgres.py); then
    echo "==> Long tests on PostgreSQL"
    DATABASE_URL="$url" $python -m pytest -m soak tests || status=1
else
    echo "==> Skipped on PostgreSQL, because no server responds: start one, or set TEST_DATABASE_URL to its address"
fi
echo "==> The core and the reference in a million steps"
REFERENCE_STEPS=1000000 $python -m pytest -n auto tests/core/test_reference.py -k many_belts || status=1
echo "==> Properties with a thousand examples each"
# shellcheck disable=SC2046
$python -m pytest -n auto --hypothesis-profile long $(grep -rl --include='test_*.py' '^@.*given(' tests) \
    tests/providers/test_properties.py || status=1
exit $status
