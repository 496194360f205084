"""Say a schema in a form that a provider takes, without a change of its meaning.

No provider takes all of JSON Schema. Where there is a form that means the same and that is taken, a schema is put into
it; where there is none, it is refused with the reason. Nothing is ever left out to make it fit.
"""
