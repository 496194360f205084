"""What may be believed of an upstream server's lists: texts are cleaned, limited and flagged before they are stored.

No module here connects to a server.
"""
