"""Live code: what a plugin is, which plugins run here, and where they come from. No Django in this ring.

contract says what a plugin promises and is given, functions makes one of typed functions, registry runs them,
loading finds them. Built-in plugins stand in ``builtin`` and use nothing but the contract.
"""
