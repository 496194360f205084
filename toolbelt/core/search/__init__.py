"""Search of tools, for ``search_tools``.

It needs no model and no network. Tools that share words with the query or mean nearly the same are compared by a few
features, which a linear ranker weighs. ``words`` and ``queries`` do without NumPy, which only servers have.
"""
