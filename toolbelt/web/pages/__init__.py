"""How is a page filled? From what control.queries found, into the presenters' plain values."""
