"""Tests that every list is returned in pages, and that invalid pages are refused."""

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


def test_the_tested_lists_include_the_main_ones():
    assert {path for path, _, _ in LISTS} >= {"/agents/{agent}/sessions", "/tokens", "/changes", "/tools"}
    assert len(OPERATIONS) > len(LISTS)


def test_a_page_after_the_last_is_empty(olga, subtests):
    furthest = {"offset": paging.MAX_OFFSET}
    for path, parameter, name in LISTS:
        if parameter in furthest:
            with subtests.test(name):
                page = olga.get(
                    address(path), {parameter: furthest[parameter], "limit": paging.MAX_LIMIT}
                ).json()
                assert (page["items"], page["next"]) == ([], None)


def test_the_largest_id_is_accepted_as_older_than(olga, subtests):
    for path, parameter, name in LISTS:
        if parameter == "older_than":
            with subtests.test(name):
                assert olga.get(address(path), {parameter: paging.MAX_INTEGER}).status_code == 200


def test_invalid_page_parameters_are_refused(olga, subtests):
    for path, parameter, name in LISTS:
        for invalid in ({"limit": 0}, {"limit": paging.MAX_LIMIT + 1}, {parameter: -1}, {parameter: 10**20}):
            with subtests.test(name, **invalid):
                answer = olga.get(address(path), invalid)
                assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, next(iter(invalid)))


@pytest.mark.parametrize("size", [1, 2, 50])
def test_following_next_returns_the_whole_list(olga, size):
    all_keys = [tool["key"] for tool in olga.get("/tools", {"limit": paging.MAX_LIMIT}).json()["items"]]
    paged_keys, page = [], olga.get("/tools", {"limit": size}).json()
    while True:
        paged_keys += [tool["key"] for tool in page["items"]]
        if page["next"] is None:
            break
        page = olga.get(page["next"].removeprefix("/api/v1")).json()
    assert paged_keys == all_keys
    assert len(all_keys) == page["total"] == 5
