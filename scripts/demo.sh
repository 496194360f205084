#!/bin/sh
# How does someone see Toolbelt? Installs it, fills a database of its own, says the login, and serves. What runs the
# demo's tools is in fixtures/demo/plugins.yaml; real tools work on a repository of the demo's own.
# Run again it keeps everything that was changed. PORT says where (8000).
set -eu
cd "$(dirname "$0")/.."

port=${PORT:-8000}
address="http://127.0.0.1:$port/"

scripts/setup.sh base

.venv/bin/python - "$port" <<'PYTHON'
import socket
import sys

port = sys.argv[1]
if not port.isdigit() or not 0 < int(port) < 65536:
    sys.exit(f"PORT={port} is no port: give a number from 1 to 65535, such as make demo PORT=8001.")
with socket.socket() as probe:
    # As the server will ask for it: a port that was just let go is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", int(port)))
    except OSError as error:
        sys.exit(f"Port {port} cannot be used ({error.strerror}): choose another, such as make demo PORT=8001.")
PYTHON

if [ ! -e .demo.env ]; then
    echo "==> Making the demo's secrets in .demo.env"
    (
        umask 077
        .venv/bin/python - >.demo.env.new <<'PYTHON'
import os
import secrets

print("# Settings of the demo, made by `make demo`. Not for production.")
print("TOOLBELT_ENV=demo")
print(f"SECRET_KEY={secrets.token_urlsafe(50)}")
print("ALLOWED_HOSTS=127.0.0.1,localhost,[::1]")
print("DATABASE_URL=sqlite:///demo.sqlite3")
print("TOOLBELT_LOG_LEVEL=WARNING")
print(f"DEMO_PASSWORD='{os.environ.get('DEMO_PASSWORD') or secrets.token_urlsafe(9)}'")
PYTHON
        mv .demo.env.new .demo.env
    )
fi
grep -q '^DEMO_REPOSITORY=' .demo.env || cat >>.demo.env <<END
TOOLBELT_PLUGINS_FILE='$PWD/fixtures/demo/plugins.yaml'
TOOLBELT_PLUGIN_INIT=start
DEMO_REPOSITORY='$PWD/demo-repository'
END

# The demo is set up by its own file alone, whatever else this shell has set.
. scripts/forget_settings.sh
unset DEMO_PASSWORD DEMO_REPOSITORY
export TOOLBELT_ENV_FILE=.demo.env

echo "==> Preparing the database demo.sqlite3"
.venv/bin/python manage.py migrate --verbosity 0
.venv/bin/python manage.py demo --address "$address"
cat <<END
  Afresh     make clean-demo, then make demo
  Stop       Ctrl+C

END

echo "==> Serving on $address"
exec .venv/bin/python -m uvicorn toolbelt.asgi:application --host 127.0.0.1 --port "$port" \
    --loop uvloop --http toolbelt.front.protocol:Protocol --lifespan on --no-access-log --timeout-graceful-shutdown 5
