"""self_evolution: an agent changes a git repository, on branches of its own, as commits that can be undone.

The work tree is neither read nor written. Tools read commits and write new commits as objects; only the last step
changes the repository, by moving a branch from the commit that was read.

processes and git run git without the programs that a repository configures, names validates names, commits reads,
writing changes and records who did it, checking runs the operator's check, plugin has the tools.
"""
