"""The MCP endpoint: agents' tools, prompts and resources for MCP clients, over Streamable HTTP.

It supports both eras of the protocol. `revisions` describes each revision; `protocol` parses messages and writes
responses, without any I/O; `request_head` parses request heads; `server` is the ASGI application. For each of its
`exchanges`, `listing` answers lists, `tool_calls` (with `ongoing_call`) runs tools, and `listening` (with `streams`)
notifies clients of changes. No response depends on state in a process, so any process can answer any request.
"""
