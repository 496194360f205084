"""Checks of this installation, with what to do about each problem: the database, the host, the settings, the people.

Servers and plugins are examined by `toolbelt.management.server_findings`, because the runtime reaches them.
"""
