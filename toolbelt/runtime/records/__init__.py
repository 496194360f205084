"""Records of calls: what is kept of each, and what is counted and learned from them."""
