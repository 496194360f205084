"""Every list is returned in pages, and invalid pages are refused."""

from __future__ import annotations

import pytest

from tests.api.test_authorization import OPERATIONS, address
from toolbelt.api import application, paging

LISTS = [
    (path, parameter["name"], described["operationId"])
    for _, path, described in application.described_operations(
        application.api.get_openapi_schema(path_prefix="")
    )
    for parameter in described["parameters"]
    if parameter["name"] in ("offset", "older_than")
]


def test_lists_are_there():
    assert {path for path, _, _ in LISTS} >= {"/agents/{agent}/sessions", "/tokens", "/changes", "/tools"}
    assert len(OPERATIONS) > len(LISTS)


def test_the_page_behind_the_last_one_is_empty(olga, subtests):
    furthest = {"offset": paging.MAX_OFFSET}
    for path, parameter, name in LISTS:
        if parameter in furthest:
            with subtests.test(name):
                page = olga.get(
                    address(path), {parameter: furthest[parameter], "limit": paging.MAX_LIMIT}
                ).json()
                assert (page["items"], page["next"]) == ([], None)


def test_the_largest_id_is_behind_none(olga, subtests):
    for path, parameter, name in LISTS:
        if parameter == "older_than":
            with subtests.test(name):
                assert olga.get(address(path), {parameter: paging.MAX_INTEGER}).status_code == 200


def test_what_is_no_page_is_refused(olga, subtests):
    for path, parameter, name in LISTS:
        for wrong in ({"limit": 0}, {"limit": paging.MAX_LIMIT + 1}, {parameter: -1}, {parameter: 10**20}):
            with subtests.test(name, **wrong):
                answer = olga.get(address(path), wrong)
                assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, next(iter(wrong)))


@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_list_is_walked_from_page_to_page(olga, size):
    whole = [one["key"] for one in olga.get("/tools", {"limit": paging.MAX_LIMIT}).json()["items"]]
    walked, page = [], olga.get("/tools", {"limit": size}).json()
    while True:
        walked += [one["key"] for one in page["items"]]
        if page["next"] is None:
            break
        page = olga.get(page["next"].removeprefix("/api/v1")).json()
    assert walked == whole
    assert len(whole) == page["total"] == 5
