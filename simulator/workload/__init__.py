"""What is published and who subscribes, and both as feeds."""
