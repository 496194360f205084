"""What is said in the middle of a conversation, by provider and model. Programs import ``lines`` alone."""
