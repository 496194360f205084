"""The code that the pages of the dashboard share."""
