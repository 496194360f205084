"""What operators may do, and the tokens of operators and agents."""
