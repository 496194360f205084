"""What shall an agent be told later? Notes with a time, once or again and again; a worker delivers what is due."""
