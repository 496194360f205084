"""Conversion of JSON Schemas into forms that a provider accepts, without changing their meaning.

No provider accepts all of JSON Schema. A schema is converted to an equivalent form that the provider accepts, or
refused with the reason if there is none. Nothing is ever left out to make a schema fit.
"""
