"""From Inductor's request to the choices it gets."""
