"""A person's browser, over plain HTTP: it follows redirects, and fills the forms of pages as they are."""

from __future__ import annotations

import html
import re
import urllib.parse
import uuid
from dataclasses import dataclass, field

import httpx
import kit

BACK = f"{kit.ADDRESS}/signed-in/"
_FORM = re.compile(r'<form[^>]*action="(?P<action>[^"]*)"[^>]*>(?P<fields>.*?)</form>', re.DOTALL)
_INPUT = re.compile(r"<input[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass
class Person:
    """An operator of Toolbelt, with a browser that keeps cookies. ``pages`` are the forms that they filled."""

    name: str
    password: str
    browser: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30))
    pages: list[str] = field(default_factory=list)

    @classmethod
    def create(cls) -> Person:
        """Create an operator, and log in."""
        name = f"person-{uuid.uuid4().hex[:8]}"
        person = cls(name, kit.manage("user", "create", name, "--generate", "--role", "operator"))
        login = {"username": name, "password": person.password, "next": "/"}
        assert person.press("/login/", page="/login/", **login).status_code == 302
        return person

    def press(self, path: str, *, page: str, **fields: str) -> httpx.Response:
        """Send a form of Toolbelt's, from a page of it."""
        seen = self.browser.get(f"{kit.ADDRESS}{page}").raise_for_status().text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', seen)
        assert token is not None, seen
        fields["csrfmiddlewaretoken"] = token[1]
        headers = {"Referer": f"{kit.ADDRESS}{page}"}
        return self.browser.post(f"{kit.ADDRESS}{path}", data=fields, headers=headers)

    def leave(self, plugin: str, account: str = "", *, begin: str = "/plugins/{}/", page: str = "") -> str:
        """Press *Sign in*, log in and consent there. Return where the authorization server sends the person."""
        home = begin.format(plugin)
        shown = self.press(f"{home}sign-in/", page=page or home)
        link = re.search(r'id="leave" href="([^"]+)"', shown.text)
        assert link is not None, self.notice(shown)
        return self.walk(html.unescape(link[1]), account)

    def notice(self, answer: httpx.Response) -> str:
        """Return what the page to which an answer leads has to say."""
        seen = self.browser.get(urllib.parse.urljoin(kit.ADDRESS, answer.headers["location"])).text
        return ", ".join(re.findall(r"<strong>(.*?)</strong>", seen))

    def walk(self, address: str, account: str) -> str:
        """Open an address and answer each page with a form, until one leads back to Toolbelt."""
        self.pages.clear()
        answer = self.browser.get(address)
        for _ in range(20):
            if answer.is_redirect:
                address = urllib.parse.urljoin(address, answer.headers["location"])
                if address.startswith(BACK):
                    return address
                answer = self.browser.get(address)
                continue
            form = _FORM.search(answer.text)
            assert form is not None, answer.text
            fields = [dict(_ATTRIBUTE.findall(each)) for each in _INPUT.findall(form["fields"])]
            typed = {"text": account, "password": "any"}
            data = {each["name"]: each.get("value") or typed.get(each["type"], "") for each in fields}
            self.pages.append(data["prompt"])
            address = urllib.parse.urljoin(address, html.unescape(form["action"]))
            answer = self.browser.post(address, data=data)
        raise AssertionError(f"The authorization server keeps asking: {address}")

    def allow(self, address: str) -> httpx.Response:
        """Allow a client that signs in, and return what the client answers to the code."""
        page = self.browser.get(address).raise_for_status().text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None, page
        fields = {"csrfmiddlewaretoken": token[1], "allow": "yes"}
        answer = self.browser.post(address, data=fields, headers={"Referer": address}).raise_for_status().text
        link = re.search(r'id="back" href="([^"]+)"', answer)
        assert link is not None, answer
        return httpx.get(html.unescape(link[1]), timeout=30)

    def sign_in(self, plugin: str, account: str = "", **options: str) -> httpx.Response:
        """Sign in at a server, and return Toolbelt's answer."""
        return self.browser.get(self.leave(plugin, account, **options))
