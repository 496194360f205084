"""What is wrong with this installation, and what to do about it: the database, the host, the settings, the people.

Servers and plugins are examined by `toolbelt.management.server_findings`, because the runtime reaches them.
"""
