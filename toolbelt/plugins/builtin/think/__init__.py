"""think: a tool in which a model reasons in writing before it acts."""
