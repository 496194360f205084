"""SDKs that are too large for the project's own tests judge its formats, for every tool of the real catalogs."""

from __future__ import annotations

from typing import Any

import botocore.session
import botocore.validate
import pytest
from mistralai.client.models import ChatCompletionRequest

from tests.formats import documents

MESSAGES = [{"role": "user", "content": "Hello."}]


@pytest.fixture(scope="module")
def converse() -> Any:
    """Return the shape of a request to Converse."""
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


def test_bedrock_accepts_every_request(converse: Any) -> None:
    validator = botocore.validate.ParamValidator()
    for parameters in documents.requests("bedrock"):
        request = {"modelId": "any", **parameters}
        assert not validator.validate(request, converse).has_errors()


def test_botocore_refuses_what_it_does_not_know(converse: Any) -> None:
    report = botocore.validate.ParamValidator().validate(
        {"modelId": "any", "toolConfig": {"tools": [], "odd": 1}}, converse
    )
    assert "odd" in report.generate_report()
    assert "min" in report.generate_report()


def test_mistral_accepts_every_request() -> None:
    for parameters in documents.requests("mistral"):
        request = {**parameters, "model": "any", "messages": [*parameters.get("messages", ()), *MESSAGES]}
        read = ChatCompletionRequest.model_validate(request)
        sent = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert {key: sent[key] for key in request} == request
