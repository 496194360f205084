"""The agents' door: each thing that an agent asks. No row ever leaves it, and a question never writes."""
