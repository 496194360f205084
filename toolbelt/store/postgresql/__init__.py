"""Django's PostgreSQL backend with a pool that keeps a few connections for operators."""
