"""How do MCP clients get an agent's tools? Over Streamable HTTP, at an address of the agent. (wire.md: MCP)

Tools alone, in both eras of the protocol. `revisions` says what each revision has; `protocol` reads messages and writes
answers, without any I/O; `heads` reads what stands before a body; `server` puts them together as an ASGI application.
Of each of its `exchanges`, `listing` answers what there is, `tool_calls` (with `calling`) runs a tool, and `listening`
(with `streams`) tells of changes. Nothing here is remembered that an answer depends on, so any process may answer any
request.
"""
