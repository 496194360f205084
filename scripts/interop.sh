#!/bin/sh
# Run third-party frameworks and clients against a real server: create an environment for each part of interop/, start
# the server, run the parts, and report their results. interop/README.md describes a part.
# Usage: scripts/interop.sh [--serve | PART ...]; --serve keeps the server running, for manual tests.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh dev

# scripts/interop.py alone configures the server.
. scripts/forget_settings.sh

exec .venv/bin/python -m scripts.interop "$@"
