"""The check that a coding agent's command line signs in to Toolbelt by its own commands, knowing only an address.

A part derives a class from :class:`Checks`, and defines the commands. The person's browser is :mod:`browsing`.
"""

from __future__ import annotations

import abc
import html
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import browsing
import kit

NODE_PACKAGES = Path(sys.prefix) / "node/node_modules"
NAME = "toolbelt"
SECONDS = 90
_QUESTION = re.compile(r"http://\S*?/oauth/authorize\?[\w.~%&=+-]+")


class Checks(abc.ABC):
    """The command line of a client. ``shown`` is what it calls itself, and ``is_connected`` what its list then says."""

    shown: str
    is_connected: str

    @abc.abstractmethod
    def program(self) -> Sequence[str]:
        """Return the command of the program, without arguments."""

    @abc.abstractmethod
    def add(self, address: str) -> Sequence[str]:
        """Return the arguments that add a server. It may begin to sign in."""

    def environment(self, home: Path) -> dict[str, str]:
        """Return the variables of the program: a home of its own, and no browser."""
        browser = home / "no-browser"
        browser.write_text("#!/bin/sh\n")
        browser.chmod(0o755)
        return {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "BROWSER": str(browser),
            "TERM": "dumb",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def start(self, home: Path, *arguments: str) -> Terminal:
        return Terminal([*self.program(), *arguments], self.environment(home), home)

    def test_it_signs_in_knowing_only_the_address(self, tmp_path: Path) -> None:
        home, person = tmp_path, browsing.Person.create()
        adding = self.start(home, *self.add(f"{kit.ADDRESS}/mcp/{kit.AGENT}"))
        adding.wait(lambda: adding.question() or adding.has_ended)
        login = adding if adding.question() else self.start(home, "mcp", "login", NAME)
        login.wait(login.question)
        answer = person.allow(login.question())
        assert answer.status_code == 200, answer.text
        login.wait(lambda: login.has_ended)
        assert login.process.returncode == 0, login.text

        listing = self.start(home, "mcp", "list")
        listing.wait(lambda: listing.has_ended)
        assert self.is_connected in listing.text, listing.text
        assert self.shown in person.browser.get(f"{kit.ADDRESS}/connections/").text


class Terminal:
    """A program that runs in a terminal, and what it has written there."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], directory: Path) -> None:
        self.text = ""
        ours, its = pty.openpty()
        self.process = subprocess.Popen(
            command, env=environment, cwd=directory, stdin=its, stdout=its, stderr=its, start_new_session=True
        )
        os.close(its)
        self._reading = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reading.start()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def question(self) -> str:
        """Return the address of the question that the person is to open; empty if it is not shown yet."""
        # A terminal breaks no line of a program that writes none.
        found = _QUESTION.search(self.text.replace("\r", "").replace("\x1b", " "))
        return html.unescape(found[0]) if found else ""

    def wait(self, until: Callable[[], object]) -> None:
        """Wait until this is true, or end the program."""
        end = time.monotonic() + SECONDS
        while not until():
            if time.monotonic() > end:
                self.process.kill()
                raise AssertionError(self.text)
            time.sleep(0.1)
        if self.has_ended:
            self._reading.join(5)

    def _read(self, terminal: int) -> None:
        with os.fdopen(terminal, "rb", buffering=0) as output:
            try:
                while part := output.read(4096):
                    self.text += part.decode(errors="replace")
            except OSError:
                # Linux's answer once the program has ended.
                pass
