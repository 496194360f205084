"""A measurement of the search of tools, on sets of requests whose tools are known.

A set is a folder with ``tools.jsonl`` (``id``, ``name``, ``description``, optionally ``input_schema``, ``toolkit``,
``toolkit_name``, ``toolkit_description``, ``category``) and ``queries.jsonl`` (``text`` and ``groups``: a list of
needed capabilities, each a list of the ids of tools of which any one serves).
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolbelt.core import catalog, errors
from toolbelt.core.search import current, engine, sentence_model, sentences

TOOLS, QUERIES = "tools.jsonl", "queries.jsonl"
_PLUGIN = "bench"
LIMIT = 10


class Unreadable(Exception):
    """A path has no readable set. The message names the path and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSet:
    """A set of requests: the catalog of its tools, the texts, and the groups of tools that each needs."""

    name: str
    stored: catalog.Catalog
    texts: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The results of the search on a set: means over its requests, and how long a query and the index take.

    ``query_p95_cpu_ms`` is in processor time, for machines that have other things to do.
    """

    name: str
    tools: int
    queries: int
    recall_1: float
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr: float
    query_p50_ms: float
    query_p95_ms: float
    query_p95_cpu_ms: float
    index_s: float


def read(path: Path) -> list[RequestSet]:
    """Return the sets in a folder, by name; the folder may itself be a set. Raise Unreadable if there is none."""
    folders = [path] if (path / TOOLS).is_file() else sorted(file.parent for file in path.glob(f"*/{TOOLS}"))
    if not folders:
        raise Unreadable(f"{path} has no set: a set is a folder with {TOOLS} and {QUERIES}.")
    return [_read(folder) for folder in folders]


def use_sentences() -> bool:
    """Use the sentence model from now on; return whether there is one."""
    sentences.use(sentences.MemoryStore())
    return sentence_model.status() != "not installed"


def measure(requests: RequestSet, *, semantic: bool = False) -> Figures:
    """Build the index of a set's tools, search for each of its requests, and return what was found."""
    started = time.perf_counter()
    index = current.of(requests.stored)
    if semantic:
        sentences.prepare(index)
    index_s = time.perf_counter() - started
    among = tuple(requests.stored.tools)
    elapsed, processor = [], []
    scores = []
    for text, groups in zip(requests.texts, requests.groups, strict=True):
        started, before = time.perf_counter(), time.thread_time()
        hits = engine.search(requests.stored, among, text, LIMIT)
        elapsed.append((time.perf_counter() - started) * 1000)
        processor.append((time.thread_time() - before) * 1000)
        scores.append(_scores([hit.tool for hit in hits], groups))
    elapsed.sort()
    processor.sort()
    means = [round(statistics.fmean(column), 4) for column in zip(*scores, strict=True)]
    return Figures(
        name=requests.name,
        tools=len(among),
        queries=len(elapsed),
        recall_1=means[0],
        recall_5=means[1],
        recall_10=means[2],
        ndcg_10=means[3],
        mrr=means[4],
        query_p50_ms=round(elapsed[len(elapsed) // 2], 2),
        query_p95_ms=round(elapsed[int(len(elapsed) * 0.95)], 2),
        query_p95_cpu_ms=round(processor[int(len(processor) * 0.95)], 2),
        index_s=round(index_s, 2),
    )


def _scores(ranked: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Return recall at 1, 5 and 10, nDCG at 10, and the reciprocal rank of the first tool that serves."""
    served: set[int] = set()
    gains = []
    for key in ranked:
        serves = {at for at, group in enumerate(groups) if key in group}
        gains.append(float(bool(serves - served)))
        served |= serves
    recalls = [
        sum(not set(ranked[:k]).isdisjoint(group) for group in groups) / len(groups) for k in (1, 5, 10)
    ]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(groups), LIMIT)))
    ndcg = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains)) / ideal
    first = next((rank for rank, gain in enumerate(gains, 1) if gain), 0)
    return (*recalls, ndcg, 1 / first if first else 0.0)


def _read(folder: Path) -> RequestSet:
    try:
        tools = [tool for _, tool in _lines(folder / TOOLS)]
        requests = [request for _, request in _lines(folder / QUERIES) if request["groups"]]
        if not requests:
            raise Unreadable(f"{folder / QUERIES} has no request with groups.")
        _check_groups(folder, {str(tool["id"]) for tool in tools})
        return RequestSet(
            name=folder.name,
            stored=_catalog(tools),
            texts=[str(request["text"]) for request in requests],
            groups=[[list(map(str, group)) for group in request["groups"]] for request in requests],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{folder} is not a readable set: {type(error).__name__}: {error}") from error


def _lines(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                reason = (
                    f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
                )
                raise Unreadable(f"{file}:{number}: This is not JSON: {reason}.") from error


def _check_groups(folder: Path, ids: Collection[str]) -> None:
    """Raise Unreadable if a group names a tool that the set does not have."""
    for number, request in _lines(folder / QUERIES):
        for tool in (str(tool) for group in request["groups"] for tool in group):
            if tool not in ids:
                error = errors.NotFound("tool", tool, ids)
                raise Unreadable(
                    f"{folder / QUERIES}:{number}: {error} Groups name tools by their id in {TOOLS}."
                )


def _catalog(tools: Sequence[Mapping[str, Any]]) -> catalog.Catalog:
    members: dict[str, list[Mapping[str, Any]]] = {}
    for tool in tools:
        if tool.get("toolkit"):
            members.setdefault(tool["toolkit"], []).append(tool)
    return catalog.compile_(
        plugins=[catalog.Plugin(name=_PLUGIN)],
        tools=[
            catalog.Tool(
                key=tool["id"],
                plugin=_PLUGIN,
                upstream_name=tool["name"],
                description=tool.get("description") or "",
                category=tool.get("category") or "",
                input_schema=json.dumps(tool.get("input_schema") or {}),
            )
            for tool in tools
        ],
        toolkits=[
            catalog.Toolkit(
                key=key,
                title=tools_[0].get("toolkit_name") or key,
                description=tools_[0].get("toolkit_description") or "",
                members=tuple(catalog.Member(tool=tool["id"]) for tool in tools_),
            )
            for key, tools_ in members.items()
        ],
    )
