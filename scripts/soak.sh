#!/bin/sh
# Run the long tests that attack a running server or take its database away. They are bounded in count and time.
# On SQLite always, and on PostgreSQL where a server answers (TEST_DATABASE_URL, or one on this machine).
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
    echo "==> No PostgreSQL server answers: start one, or give its address in TEST_DATABASE_URL, to run them there too"
fi
echo "==> Properties, at length"
# shellcheck disable=SC2046
$python -m pytest -n auto --hypothesis-profile long $(grep -rl --include='test_*.py' '^@.*given(' tests) || status=1
exit $status
