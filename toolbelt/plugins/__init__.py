"""Plugins: their contract, their registry, and how they are loaded. This package does not import Django.

``contract`` defines what a plugin provides and receives, ``functions`` makes a plugin from typed functions,
``registry`` runs plugins, and ``loading`` finds them. Built-in plugins are in ``builtin``, and use only the contract.
"""
