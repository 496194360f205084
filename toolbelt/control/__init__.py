"""The actions of operators: each is one function, one transaction and one audit entry."""
