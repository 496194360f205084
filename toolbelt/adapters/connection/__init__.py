"""Ask Toolbelt and call through it, from a program: the same two requests over HTTP and in process.

``protocol`` is what the client of a framework is handed, ``http`` the way over HTTP; toolbelt.runtime.connection is the
one in process.
"""
