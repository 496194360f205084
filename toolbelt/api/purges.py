"""Purges: a tool or the texts of a toolkit must leave every conversation."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, problems, schemas
from toolbelt.control.catalog import purging
from toolbelt.control.people import rights

router = ninja.Router()


class PurgeRequest(schemas.Body):
    """A purge."""

    reason: names.Reason = ""
    confirm: Annotated[names.Confirm, pydantic.Field(description="Required, except for a dry run.")] = False
    dry_run: names.DryRun = False


class PurgeResult(ninja.Schema):
    """What a purge did, or would do."""

    change: Annotated[
        int | None, pydantic.Field(description="The id of the change, to undo it by. Null for a dry run.")
    ]
    agents: Annotated[
        list[str], pydantic.Field(description="The agents that have it as it is now: edit or block it first.")
    ]
    conversations: Annotated[
        change_results.Conversations, pydantic.Field(description="The live conversations that it concerns.")
    ]
    dry_run: Annotated[bool, pydantic.Field(description="Whether nothing was written.")] = False


def _declare(kind: purging.Kind, path: str) -> None:
    """Declare the operation for one kind."""

    def purge(request: HttpRequest, name: names.Name, body: PurgeRequest) -> Any:
        """Purge it."""
        if body.dry_run:
            return _result(None, purging.plan(kind, name))
        write = auth.write(request, reason=body.reason, confirm=body.confirm)
        change = purging.purge(write, kind, name)
        return _result(change.entry, change.purge)

    purge.__name__ = f"purge_{kind}"
    what = "a tool" if kind == "tool" else "the texts of a toolkit"
    description = (
        f"Remove {what} from every conversation, also if it no longer exists. Conversations that have read it begin"
        " again with their next request; calls of a purged tool are refused in them at once."
        " Returns 409 `confirmation-required` without `confirm`."
    )
    router.post(
        path,
        auth=auth.writing(rights.permission("change", kind)),
        response={200: PurgeResult, **problems.documented(409)},
        description=description,
        tags=[f"{kind}s"],
    )(purge)


def _result(entry: int | None, purge: purging.Purge) -> dict[str, Any]:
    return {
        "change": entry,
        "agents": list(purge.agents),
        "conversations": purge.conversations._asdict(),
        "dry_run": entry is None,
    }


_declare("tool", "/tools/{name}/purge")
_declare("toolkit", "/toolkits/{name}/purge")
