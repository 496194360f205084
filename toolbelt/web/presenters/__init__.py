"""What does a page show? Plain values, shaped for the templates: no row, no query, no rule.

One module a page: `agents`, `access` (with `model` for the panel beside it), `changes`; `answers` for what
a change gives back; `chrome` for the frame around them all; `pieces` for what several of them use.

Texts are ready to print (numbers grouped, moments in words), because two templates that format one number
differ sooner or later. They are not marked safe: whatever an upstream server wrote is escaped by the
template.
"""
