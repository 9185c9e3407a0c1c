"""How often devices speak, and what they are sent."""
