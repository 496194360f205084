"""Rows to values and back: whoever asks gets frozen values, whoever writes gives them. No row leaves this room."""
