#!/bin/sh
# Print the path of the browser for the browser tests. CHROMIUM is its name or path. With CI=true, a missing browser is installed.
# The headless shell is preferred: it is the same browser, and tests take two thirds of the time.
set -eu

find_browser() {
    command -v "${CHROMIUM:-chromium-headless-shell}" || command -v chromium || command -v chromium-browser ||
        command -v google-chrome
}

if [ "${CI:-}" = true ] && ! find_browser >/dev/null; then
    as_root=$([ "$(id -u)" = 0 ] || echo sudo)
    $as_root apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium-headless-shell >&2 ||
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium >&2
fi
find_browser
