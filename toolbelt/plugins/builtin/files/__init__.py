"""files: text files within one root, which nothing that an agent says can leave.

paths says which paths may be named, confined does all that touches the disk, text and searching work on what was
read, settings reads the configuration, declared says what is offered, plugin carries out, toolkit tells the model.
"""
