"""What operators do: each action is one function, one transaction and one audit entry."""
