"""What authentication costs, and what intruders do to others."""
