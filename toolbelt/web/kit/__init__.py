"""What the pages of the dashboard share."""
