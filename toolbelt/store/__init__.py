"""Conversion of rows to values and back. This package accepts and returns frozen values, never rows."""
