#!/bin/sh
# Install Toolbelt into .venv, and serve the demo (`toolbelt demo`). Run again, it keeps everything that was changed.
# PORT is the port (8000).
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh base
echo "==> To start from nothing again: make clean-demo, then make demo"
exec .venv/bin/python -m toolbelt demo --port "${PORT:-8000}"
