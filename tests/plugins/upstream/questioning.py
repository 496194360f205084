"""A real MCP server over HTTP that asks the user: the official SDK's, in a thread, in either era of the protocol."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import mcp_types as types
from mcp import UrlElicitationRequiredError
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

from tests.plugins.upstream import serving, stateful


class Name(BaseModel):
    name: str


class City(BaseModel):
    city: str


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def ask_city(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[City]:
    return Elicit(f"Where do you live, {name.name}?", City)


def _server() -> MCPServer:
    server = MCPServer("questioning")

    @server.tool()
    def greet(name: Annotated[Name, Resolve(ask_name)], city: Annotated[City, Resolve(ask_city)]) -> str:
        """Greet the user; asks the user twice."""
        return f"Hello {name.name} of {city.city}."

    @server.tool()
    async def think(ctx: Context[Any]) -> str:
        """Send a log message and return a thought."""
        with warnings.catch_warnings():
            # MCP's log messages are deprecated, but many servers still send them.
            warnings.simplefilter("ignore")
            await ctx.log("info", "thinking", logger_name="mind")
        return "thought"

    @server.tool()
    def pay() -> str:
        """Ask the user to open a page; always fail, because this server never learns that they have."""
        page = types.ElicitRequestURLParams(
            message="Pay first.", url="https://pay.example/1", elicitation_id="e1"
        )
        raise UrlElicitationRequiredError([page])

    @server.prompt()
    async def welcome(ctx: Context[Any]) -> Any:
        """Welcome the user; asks the user once."""
        return await _city(ctx, "Welcome to {}.")

    @server.resource("home://{user}", name="home")
    async def home(user: str, ctx: Context[Any]) -> Any:
        """Return where the user lives; asks the user once."""
        return await _city(ctx, user + " of {}.")

    return server


async def _city(ctx: Context[Any], text: str) -> Any:
    """Return the text with the user's city, or the question for it."""
    question = "Where do you live?"
    if (ctx.protocol_version or "") < "2026-07-28":
        elicited = await ctx.elicit(question, City)
        return text.format(elicited.data.city if elicited.action == "accept" else "nowhere")
    if not ctx.input_responses:
        form = types.ElicitRequestFormParams(message=question, requested_schema=City.model_json_schema())
        return types.InputRequiredResult(input_requests={"city": types.ElicitRequest(params=form)})
    answer: Any = ctx.input_responses["city"]
    return text.format(answer.content["city"])


@contextlib.contextmanager
def served(*, is_modern: bool) -> Iterator[str]:
    """Run the server on a free port; yield the address. In the first era, it has sessions and refuses the second."""
    app: Any = _server().streamable_http_app()
    with serving.running(app if is_modern else stateful.WithSessions(app)) as address:
        yield address
