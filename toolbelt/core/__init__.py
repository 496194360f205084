"""Values and rules: no Django, no clock, no input or output.

Everything that Toolbelt decides is decided here, by functions from frozen values to frozen values.
The rings around it fetch rows, write them, and present the answers.
"""
