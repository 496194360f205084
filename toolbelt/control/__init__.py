"""The operators' door: each thing that an operator does is one function, one transaction, one audit entry."""
