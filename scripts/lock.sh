#!/bin/sh
# Which exact packages run Toolbelt? Writes requirements/*.txt from the ranges in pyproject.toml.
# The second lock is constrained by the first, so dev.txt always holds everything of base.txt.
set -eu
cd "$(dirname "$0")/.."

compile() {
    CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/python -m piptools compile --quiet --extra mcp --extra redis "$@" pyproject.toml
}

echo "==> Locking requirements/base.txt"
compile "$@" --output-file requirements/base.txt
echo "==> Locking requirements/dev.txt"
compile "$@" --extra dev --constraint requirements/base.txt --output-file requirements/dev.txt
