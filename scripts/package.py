"""Build what is published: python -m scripts.package [--release] [FOLDER]

Into FOLDER (default: dist): the source package, the wheel, which is built from the source package, so that nothing is
missing there, and the notes of the release, which are its section of the changelog. Nothing is uploaded. With
--release, the version has to be one that can be published: final, and dated in the changelog.
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import toolbelt

ROOT = Path(__file__).resolve().parent.parent
NOTES = "RELEASE_NOTES.md"
# A file of each kind that the server reads from its package.
_NEEDED = ("assets/templates/base.html", "assets/static/css/", "assets/fixtures/demo.yaml", "py.typed")
# How a module, a message and a page name a document.
_POINTER = re.compile(r"""\bdocs/([\w/-]+\.md)|\bdocument\("([^"]+)"\)|'web:document' '([^']+)'""")


def release_notes(changelog: str, version: str) -> str:
    """Return the section of the changelog for a version, without its heading; raise ValueError.

    It must be the newest, so that no release is published without its notes.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    heading, _, text = (sections[0] if sections else "").partition("\n")
    newest = heading.split(" ")[0]
    if newest != version:
        raise ValueError(
            f"The newest section of the changelog is {newest or 'missing'}, and the version {version}."
        )
    if not text.strip():
        raise ValueError(f"The section of {version} in the changelog is empty.")
    return text.strip() + "\n"


def release_problems(changelog: str, version: str) -> list[str]:
    """Return why a version with notes must not be published yet."""
    heading = next(line for line in changelog.splitlines() if line.startswith("## "))
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"The version {version} is not final: write it as 1.2.3.")
    if not re.fullmatch(rf"## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        found.append(f"The changelog has no date for it: write ## {version} (YYYY-MM-DD).")
    return found


def problems(wheel: Path, version: str) -> list[str]:
    """Return what is wrong with the contents of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        stated = email.message_from_bytes(archive.read(metadata))
        pointers = {
            document: name
            for name in names
            if name.startswith("toolbelt/") and name.endswith((".py", ".html"))
            for found in _POINTER.findall(archive.read(name).decode())
            for document in filter(None, found)
        }
    found = [
        f"It has no {needed}."
        for needed in _NEEDED
        if not any(f"toolbelt/{needed}" in name for name in names)
    ]
    found += [
        f"{name} points to {document}, which it does not have."
        for document, name in sorted(pointers.items())
        if f"toolbelt/assets/docs/{document}" not in names
    ]
    if stated["Version"] != version:
        found.append(f"Its version is {stated['Version']}.")
    found += [
        f"It states no {name}."
        for name in ("Summary", "License-Expression", "Requires-Python")
        if not stated[name]
    ]
    # What frameworks' programs install must bring neither Django nor another client of MCP.
    base = [name for name in stated.get_all("Requires-Dist", []) if "extra ==" not in name]
    found += [f"Its base requires {name}." for name in base if re.match(r"(?i)(django|mcp|uvicorn)\b", name)]
    return found


def build(folder: Path, *, is_release: bool = False) -> Path:
    """Build into the folder; return the wheel. End the process if something is wrong with it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = release_notes(changelog, toolbelt.__version__)
    if is_release and (found := release_problems(changelog, toolbelt.__version__)):
        sys.exit("\n".join(found))
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    [wheel] = folder.glob(f"*-{toolbelt.__version__}-*.whl")
    if found := problems(wheel, toolbelt.__version__):
        sys.exit("\n".join([f"{wheel} must not be published:", *found]))
    (folder / NOTES).write_text(notes, encoding="utf-8")
    return wheel


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--release"]
    wheel = build(Path(folders[0] if folders else "dist"), is_release="--release" in sys.argv)
    print(f"Built {wheel}, its source package and {NOTES}")
