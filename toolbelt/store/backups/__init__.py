"""Copies of the whole database: a SQLite file, an archive of ``pg_dump``, or rows from one database to another."""
