"""The HTTP API: agents request surfaces and call tools, operators read and change the configuration.

Every request is authenticated by a token, never by a cookie. An operation parses its input, makes one call to
``runtime`` or ``control``, and presents the result. Errors are problem details (see toolbelt.api.problems).
"""
