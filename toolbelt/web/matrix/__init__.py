"""The matrix of agents and toolkits."""
