"""The ASGI application in front of Django, and the server's HTTP protocol.

Nothing is imported here: a server with several workers imports :mod:`toolbelt.front.protocol` before Django is set up.
"""
