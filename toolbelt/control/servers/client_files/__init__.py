"""Import of upstream servers from the configuration files of MCP clients.

`reading` turns a file into a document, `formats` finds the servers in it, `conversion` turns each into a connection
without secrets, and `importing` stores them.
"""
