#!/bin/sh
# Do frameworks and clients that others wrote get on with Toolbelt? Makes an environment for each part of interop/, starts
# a server, runs the parts against it, and says how each of them went. interop/README.md says what a part is.
# Usage: scripts/interop.sh [--serve | PART ...]; --serve keeps the server for trying things by hand.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh dev

# The server is set up by what stands in scripts/interop.py alone.
. scripts/forget_settings.sh

exec .venv/bin/python -m scripts.interop "$@"
