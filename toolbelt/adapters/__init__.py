"""What a program imports to use Toolbelt: clients for agent frameworks, and the connection that they share.

``render`` is the same as ``toolbelt.formats.render``.
"""

from toolbelt.formats import FORMATS, render

__all__ = ["FORMATS", "render"]
