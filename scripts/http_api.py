"""What does docs/reference/http-api.md say? (`python -m scripts.http_api` writes it anew)

It is made from the OpenAPI document, as the page under /api/v1/docs is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolbelt.api import reference

PAGE = Path(__file__).parent.parent / "docs/reference/http-api.md"
TOP = """# The HTTP API

What agents ask and operators do, as JSON under `/api/v1/`. This page is made from the OpenAPI document, by
`python -m scripts.http_api`; a running Toolbelt serves the document at `/api/v1/openapi.json`, and this page in its own
clothes at `/api/v1/docs`, to whoever is logged in or sends a token. How to begin:
[Ask over HTTP](../how-to/ask-over-http.md).

- Every operation takes a token: `Authorization: Bearer tb_…`. [`manage.py token`](commands.md#token) issues them. A
  login's cookie opens nothing here.
- A key that a body does not have, and a parameter that an operation does not have, is refused with its name.
- Lists come in pages: `items`, `total`, and `next`, the address of the next page.
- What goes wrong is answered as problem details (RFC 9457): [the codes](errors.md#problems-of-the-http-api).
- [Limits](settings.md#toolbelt_api_per_minute): requests a minute, bytes and depth of a body.
"""


def page() -> str:
    """Write the page. Needs Django to be set up."""
    from toolbelt.api import reference

    found = reference.read()
    parts = [TOP]
    for group in found.groups:
        parts.append(f"## {group.title.capitalize()}\n")
        parts += ["\n".join(_operation(one)) for one in group.operations]
    parts.append("## Shapes\n")
    parts += ["\n".join(_shape(one)) for one in found.shapes]
    return "\n".join(parts).rstrip() + "\n"


def _operation(one: reference.Operation) -> Iterator[str]:
    yield f"### `{one.method} {one.path}`\n"
    for paragraph in one.about:
        yield f"{paragraph}\n"
    yield f"{one.door}\n"
    yield from _fields("parameter", (*one.parameters, *one.body))
    answers = ", ".join(f"{answer.status} {answer.kind}" for answer in one.answers)
    yield f"Answers {answers}; or a problem: {', '.join(map(str, one.problems))}.\n"


def _shape(one: reference.Shape) -> Iterator[str]:
    yield f"### {one.name}\n"
    if one.about:
        yield f"{one.about}\n"
    yield from _fields("key", one.fields)


def _fields(head: str, fields: tuple[reference.Field, ...]) -> Iterator[str]:
    if not fields:
        return
    yield f"| {head} | is | |"
    yield "|---|---|---|"
    for field in fields:
        needed = ", required" if field.required else ""
        where = f", in the {field.where}" if field.where else ""
        yield f"| `{field.name}` | {_cell(field.kind)}{where}{needed} | {_cell(field.about)} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write it into its file."""
    import django

    os.environ.setdefault("TOOLBELT_ENV", "test")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")
    django.setup()
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Written: {PAGE.relative_to(PAGE.parent.parent.parent)}")


if __name__ == "__main__":
    main()
