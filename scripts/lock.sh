#!/bin/sh
# Write the lock files, requirements/*.txt, from the version ranges in pyproject.toml.
# The first lock constrains the second, so dev.txt always contains everything in base.txt.
set -eu
cd "$(dirname "$0")/.."

# compile FILE OPTION ...: with the extras of a server.
compile() {
    file=$1
    shift
    CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/python -m piptools compile --quiet \
        --extra server --extra redis "$@" --output-file "$file" pyproject.toml
    # pip-tools drops the markers of requirements of extras. uvloop does not run on Windows.
    sed 's/^\(uvloop==[^ ]*\) \\$/\1 ; sys_platform != "win32" \\/' "$file" >"$file.new"
    mv "$file.new" "$file"
}

echo "==> Locking requirements/base.txt"
compile requirements/base.txt "$@"
echo "==> Locking requirements/dev.txt"
compile requirements/dev.txt --extra dev --extra alerts --constraint requirements/base.txt "$@"

# The extra alone, at the versions of dev.txt: scripts/sentence_model.sh installs it beside those packages.
echo "==> Locking requirements/semantic.txt"
.venv/bin/python -c '
import pathlib, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
print("\n".join(project["optional-dependencies"]["semantic"]))
' | CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/python -m piptools compile --quiet --constraint requirements/dev.txt "$@" \
    --output-file requirements/semantic.txt -
