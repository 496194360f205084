"""self_evolution: an agent works on a real git repository, on branches of its own, as commits that can be undone.

The work tree belongs to people and is neither read nor written. Every act reads commits and makes new ones out of
objects; that a branch moves, from the very commit that was read, is the one change and the last step.

processes and git run git so that nothing of the repository's own runs, names says what may be named, reading and
searching look, edits and writing change, trail keeps who did it, comparing and checking tell how it stands.
"""
