"""Connections from a program to Toolbelt, with two requests: fetch a surface, and call a tool.

``protocol`` is the interface that framework integrations use, and ``http`` implements it over HTTP.
toolbelt.runtime.connection implements it in process.
"""
