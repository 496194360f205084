#!/bin/sh
# Is this checkout good? Sets itself up, runs every check to its end, and says which of them failed.
# A part whose tool is missing is skipped and says so; with CI=true that is a failure.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh dev

python=.venv/bin/python
# The same on every machine, whatever its shell has set for an installation.
. scripts/forget_settings.sh
export TOOLBELT_ENV=test
passed=0 failed='' skipped=''

stage() {
    name=$1
    shift
    printf '\n==> %s\n' "$name"
    begun=$(date +%s)
    if "$@"; then
        passed=$((passed + 1))
        echo "    passed in $(($(date +%s) - begun)) s"
    else
        failed="$failed
    $name"
        echo "    FAILED in $(($(date +%s) - begun)) s"
    fi
}

# skip NAME BECAUSE
skip() {
    printf '\n==> %s\n    SKIPPED: %s\n' "$1" "$2"
    if [ "${CI:-}" = true ]; then
        failed="$failed
    $1 (skipped, and CI skips nothing)"
    else
        skipped="$skipped
    $1"
    fi
}

templates() { find templates -name '*.html' -exec .venv/bin/djade --check --target-version 5.2 {} +; }

deployable() {
    env -u TOOLBELT_ENV TOOLBELT_ENV_FILE=/dev/null ALLOWED_HOSTS=toolbelt.example.com \
        SECRET_KEY="$($python -c 'import secrets; print(secrets.token_urlsafe(50))')" \
        $python manage.py check --deploy --fail-level WARNING
}

stage "Code: ruff" $python -m ruff check .
stage "Form: ruff" $python -m ruff format --check .
stage "Templates: djade" templates
stage "Types: mypy" $python -m mypy
stage "Imports: import-linter" $python .venv/bin/lint-imports
stage "Migrations: nothing left to make" $python manage.py makemigrations --check --dry-run
stage "Production: check --deploy" deployable
stage "Scenarios" $python manage.py try tests/scenarios
stage "Tests on SQLite" $python -m pytest -n auto -m 'not browser and not soak'

if url=$($python scripts/find_postgres.py); then
    # The core, the plugins, the adapters and the pages of docs know no database, and what the API answers to scenarios
    # and to nonsense is the same on both: that has been tested above. (Scenarios run through the rows of both.)
    stage "Tests on PostgreSQL" env DATABASE_URL="$url" $python -m pytest -n auto -m 'not browser and not soak' \
        --ignore=tests/core --ignore=tests/plugins --ignore=tests/docs \
        --ignore=tests/adapters --ignore=tests/api/test_fuzzing.py --ignore=tests/flows/test_scenarios_over_http.py
else
    skip "Tests on PostgreSQL" "no server answers; start one and give its address in TEST_DATABASE_URL."
fi

if chromium=$(scripts/find_chromium.sh); then
    stage "Tests in the browser" env CHROMIUM="$chromium" $python -m pytest -n auto --maxprocesses 4 -m browser
else
    skip "Tests in the browser" "there is no Chromium; install it (on Debian: apt-get install chromium-headless-shell)."
fi

printf '\n%s stages passed\n' "$passed"
[ -z "$skipped" ] || echo "skipped:$skipped"
[ -z "$failed" ] || {
    echo "FAILED:$failed"
    exit 1
}
