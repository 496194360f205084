"""scheduler: notes that are delivered to an agent later, once or repeatedly. A worker delivers them."""
