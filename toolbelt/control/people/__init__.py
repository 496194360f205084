"""The permissions of operators, and the tokens of operators and agents."""
