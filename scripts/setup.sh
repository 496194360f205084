#!/bin/sh
# Create the virtual environment .venv, with the packages of a lock file.
# Usage: scripts/setup.sh base|dev. Installs only if the lock file has changed since the last time.
set -eu
cd "$(dirname "$0")/.."

lock=$1
stop() {
    printf '\n%s\n' "$1" >&2
    exit 1
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        # Run it, because a name on the PATH may be a shim without an installed Python.
        if is_recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# An environment whose creation was interrupted has no pip.
is_complete() { is_recent .venv/bin/python && .venv/bin/python -c 'import pip' 2>/dev/null; }

if ! is_complete; then
    echo "==> Looking for Python 3.11 or newer"
    python=$(find_python) || stop "Toolbelt needs Python 3.11 or newer, and ${PYTHON:-python3} is not one: install it (on \
Debian: apt-get install python3 python3-venv), or set PYTHON=/path/to/python3."
    echo "==> Creating a virtual environment in .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv >.venv.log 2>&1 || {
        rm -rf .venv
        stop "$python cannot make virtual environments: install its venv module (on Debian: apt-get install \
python3-venv) and run this again; its output is in .venv.log."
    }
    rm -f .venv.log
fi

# dev.txt contains all of base.txt at the same versions, so an installed dev.txt satisfies both.
installed() { cmp -s "requirements/$1.txt" ".venv/$1.installed"; }

if ! installed "$lock"; then
    echo "==> Installing the packages of requirements/$lock.txt (this takes a while the first time)"
    rm -f .venv/*.installed
    # The lock file is complete, and Python compiles modules when they are first imported.
    if ! .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check --retries 2 \
        --no-deps --no-compile --require-hashes --requirement "requirements/$lock.txt" >.venv/install.log 2>&1; then
        grep -E '^ *ERROR' .venv/install.log | tail -n 3 >&2 || true
        if grep -q 'DO NOT MATCH THE HASHES' .venv/install.log; then
            stop "A package from the index does not match the lock file: check which index pip uses \
(python3 -m pip config list), or lock again with 'make lock'; the output is in .venv/install.log."
        fi
        stop "The packages could not be installed: check that this machine reaches a Python package index (set \
PIP_INDEX_URL to use another one) and run this again; the output is in .venv/install.log."
    fi
    cp requirements/base.txt .venv/base.installed
    cp "requirements/$lock.txt" ".venv/$lock.installed"
fi
