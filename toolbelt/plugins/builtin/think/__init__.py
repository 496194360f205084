"""think: a place to reason in writing, between what a tool answered and what is done about it."""
