#!/bin/sh
# Which exact packages run Toolbelt? Writes requirements/*.txt from the ranges in pyproject.toml.
# The second lock is constrained by the first, so dev.txt always holds everything of base.txt.
set -eu
cd "$(dirname "$0")/.."

# compile FILE OPTION ...: with the extras of a server.
compile() {
    file=$1
    shift
    CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/python -m piptools compile --quiet \
        --extra server --extra mcp --extra redis "$@" --output-file "$file" pyproject.toml
    # What an extra wants on some systems alone, pip-tools writes down for all of them.
    sed 's/^\(uvloop==[^ ]*\) \\$/\1 ; sys_platform != "win32" \\/' "$file" >"$file.new"
    mv "$file.new" "$file"
}

echo "==> Locking requirements/base.txt"
compile requirements/base.txt "$@"
echo "==> Locking requirements/dev.txt"
compile requirements/dev.txt --extra dev --constraint requirements/base.txt "$@"

# The extra alone, without what it shares with dev.txt: it is installed beside that (scripts/sentence_model.sh).
echo "==> Locking requirements/semantic.txt"
.venv/bin/python -c '
import pathlib, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
print("\n".join(project["optional-dependencies"]["semantic"]))
' | CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/python -m piptools compile --quiet --constraint requirements/dev.txt "$@" \
    --output-file requirements/semantic.txt -
