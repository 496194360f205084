"""The base classes of bodies and queries, and the schemas of problems."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
import pydantic_core


class Body(ninja.Schema):
    """A request body. Unknown keys are refused, with their path."""

    model_config = {"extra": "forbid"}


class Query(ninja.Schema):
    """The parameters of a query string. Unknown and repeated parameters are refused by name."""

    model_config = {"extra": "forbid"}

    @pydantic.model_validator(mode="before")
    @classmethod
    def _keep_unknown_names(cls, parameters: Any, info: pydantic.ValidationInfo) -> Any:
        """Restore unknown parameters, which Ninja leaves out, so that they are refused like unknown keys of a body.

        Refuse parameters that are given more than once: of these, Ninja takes the last value.
        """
        request = (info.context or {}).get("request")
        if request is None or not isinstance(parameters, dict):
            return parameters
        repeated = [name for name, values in request.GET.lists() if len(values) > 1]
        if repeated:
            error = pydantic_core.PydanticCustomError("repeated", "repeated: give the parameter once")
            raise pydantic_core.ValidationError.from_exception_data(
                cls.__name__, [{"type": error, "loc": (name,), "input": None} for name in repeated]
            )
        return {
            **{name: request.GET[name] for name in request.GET if name not in cls.model_fields},
            **parameters,
        }


class ErrorDetail(ninja.Schema):
    """An invalid value."""

    path: Annotated[str, pydantic.Field(description="Where it is, such as `agents.ada.tools[1]`.")]
    message: str


class Problem(ninja.Schema):
    """An error, as problem details (RFC 9457). Some fields are only present for some codes."""

    type: Annotated[str, pydantic.Field(description="The address of the code's description.")]
    title: str
    status: Annotated[int, pydantic.Field(description="The HTTP status.")]
    detail: Annotated[str, pydantic.Field(description="What happened, and what to do.")]
    code: Annotated[str, pydantic.Field(description="A stable code for programs.")]
    errors: Annotated[
        list[ErrorDetail] | None, pydantic.Field(description="invalid: all invalid values.")
    ] = None
    nearest: Annotated[list[str] | None, pydantic.Field(description="not-found: similar names.")] = None
    was: Annotated[Any, pydantic.Field(description="stale: the value that you expected.")] = None
    now: Annotated[Any, pydantic.Field(description="stale: the current value.")] = None
    wanted: Annotated[Any, pydantic.Field(description="stale: the value that you sent.")] = None
    reasons: Annotated[
        list[str] | None,
        pydantic.Field(description="confirmation-required: why the change is far-reaching."),
    ] = None
    differences: Annotated[
        dict[str, Any] | None, pydantic.Field(description="confirmation-required: the effects of the change.")
    ] = None
    request_id: Annotated[
        str | None, pydantic.Field(description="internal: the id of the request in the log.")
    ] = None
