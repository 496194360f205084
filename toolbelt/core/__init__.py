"""Values and rules: no Django, no clock, no input or output.

Every decision that Toolbelt makes is made here, by functions from frozen values to frozen values. The layers around it
fetch rows, write them, and present the answers.
"""
