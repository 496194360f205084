"""A minimal browser for tests: it opens a form, fills in the rendered fields, and sends it as a browser would."""

from __future__ import annotations

import html.parser
from typing import Any

from django.test import Client


class Page:
    """A page of the admin with its form. ``fields`` is the data that would be sent."""

    def __init__(self, client: Client, address: str, response: Any) -> None:
        self.client, self.address, self.response = client, address, response
        self.status = response.status_code
        self.html = response.content.decode()
        reader = _Reader()
        reader.feed(self.html)
        self.fields: dict[str, list[str]] = reader.fields

    def type(self, **texts: Any) -> Page:
        """Type into fields."""
        for name, text in texts.items():
            assert name in self.fields or name in self.boxes, f"there is no field {name}"
            self.fields[name] = [str(text)]
        return self

    def tick(self, *names: str) -> Page:
        """Tick boxes."""
        for name in names:
            assert name in self.boxes, f"there is no box {name}"
            self.fields[name] = [self.boxes[name]]
        return self

    def untick(self, *names: str) -> Page:
        """Clear boxes."""
        for name in names:
            assert name in self.boxes, f"there is no box {name}"
            self.fields.pop(name, None)
        return self

    def line(self, table: str, **cells: Any) -> Page:
        """Add a line to a table."""
        number = int(self.fields[f"{table}-TOTAL_FORMS"][0])
        self.fields[f"{table}-TOTAL_FORMS"] = [str(number + 1)]
        for name in [name for name in self.fields if name.startswith(f"{table}-__prefix__-")]:
            self.fields[name.replace("__prefix__", str(number))] = list(self.fields[name])
        self.fields |= {f"{table}-{number}-{name}": [_sent(cell)] for name, cell in cells.items()}
        return self

    def number(self, table: str, column: str, row: Any) -> int:
        """Return the number of the line that refers to a row."""
        for number in range(int(self.fields[f"{table}-TOTAL_FORMS"][0])):
            if self.fields[f"{table}-{number}-{column}"] == [str(row.pk)]:
                return number
        raise AssertionError(f"no line of {table} names {row}")

    def change(self, table: str, number: int, **cells: Any) -> Page:
        """Type into the cells of a line."""
        self.fields |= {f"{table}-{number}-{name}": [_sent(cell)] for name, cell in cells.items()}
        return self

    def tick_cell(self, table: str, number: int, name: str) -> Page:
        """Tick the box in a line."""
        self.fields[f"{table}-{number}-{name}"] = ["on"]
        return self

    def remove(self, table: str, number: int) -> Page:
        """Mark a line to be removed."""
        self.fields[f"{table}-{number}-DELETE"] = ["on"]
        return self

    def send(self) -> Page:
        """Send the form, and return the response: the form again, or a redirect."""
        return Page(self.client, self.address, self.client.post(self.address, self.fields))

    @property
    def boxes(self) -> dict[str, str]:
        """Return the values that the boxes send when they are ticked, by name."""
        reader = _Reader()
        reader.feed(self.html)
        return reader.boxes

    @property
    def was_saved(self) -> bool:
        """Return whether the response is a redirect, as it is when everything was saved."""
        return bool(self.status == 302)

    @property
    def errors(self) -> dict[str, list[str]]:
        """Return the errors by field: of a line as ``members-0-tool``, of a whole table as ``members``."""
        errors = {_field_name(name): list(messages) for name, messages in self.form.errors.items()}
        for table in self.response.context["inline_admin_formsets"]:
            formset = table.formset
            if formset.non_form_errors():
                errors[formset.prefix] = list(formset.non_form_errors())
            for line in formset.forms:
                errors |= {
                    f"{line.prefix}-{_field_name(name)}": list(messages)
                    for name, messages in line.errors.items()
                }
        return errors

    @property
    def form(self) -> Any:
        """Return the form of the response."""
        return self.response.context["adminform"].form


def open_(client: Client, address: str) -> Page:
    """Open a page."""
    return Page(client, address, client.get(address))


def _field_name(name: str) -> str:
    return "" if name == "__all__" else name


def _sent(cell: Any) -> str:
    return str(getattr(cell, "pk", cell))


class _Reader(html.parser.HTMLParser):
    """Parse the data that the forms of a page would send."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self.boxes: dict[str, str] = {}
        self._area: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        attributes = dict(attrs)
        name = attributes.get("name") or ""
        match tag:
            case "input" if attributes.get("type") in ("checkbox", "radio"):
                self.boxes.setdefault(name, attributes.get("value") or "on")
                if "checked" in attributes:
                    self.fields.setdefault(name, []).append(attributes.get("value") or "on")
            case "input" if attributes.get("type") not in ("submit", "image", "search"):
                self.fields.setdefault(name, []).append(attributes.get("value") or "")
            case "textarea":
                self._area = name
                self.fields[name] = [""]
            case "select":
                self._select = name
                self.fields.setdefault(name, [])
            case "option" if self._select and "selected" in attributes:
                self.fields[self._select].append(attributes.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            # A browser drops the first line break, and sends the others as CRLF.
            text = self.fields[self._area][0].removeprefix("\r").removeprefix("\n")
            self.fields[self._area] = [text.replace("\r\n", "\n").replace("\n", "\r\n")]
            self._area = None
        elif tag == "select" and self._select:
            self.fields[self._select] = self.fields[self._select] or [""]
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area][0] += data
