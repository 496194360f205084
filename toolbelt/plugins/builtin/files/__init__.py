"""files: text files below one root that agents cannot leave.

paths validates paths, confined accesses the disk, searching searches many files, plugin has the tools, toolkit has
their policy.
"""
