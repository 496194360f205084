"""The authorization server of MCP clients: metadata, registration, consent and tokens (docs/reference/mcp.md, sign-in).

It is django-oauth-toolkit's, with the accounts of operators. Here is what it leaves to an installation, and what it is
told to refuse.
"""
