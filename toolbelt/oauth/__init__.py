"""The authorization server of MCP clients: metadata, registration, consent and tokens (docs/reference/mcp.md, sign-in).

It is django-oauth-toolkit's, with the accounts of operators. This package has what the library leaves to an
installation, and refuses what the library would accept.
"""
