"""What does the network ask? Agents ask and call, operators read and write; each with a token, none with a cookie.

A shell like the others: an operation parses, makes one call to ``runtime`` or ``control``, and presents. What its
callers did wrong is said as problem details (see toolbelt.api.problems).
"""
