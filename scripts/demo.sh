#!/bin/sh
# Install Toolbelt into .venv and serve the demo (`toolbelt demo`). A second run keeps your changes.
# PORT is the port (default: 8000).
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh base
echo "==> To start over: make clean-demo, then make demo"
exec .venv/bin/python -m toolbelt demo --port "${PORT:-8000}"
