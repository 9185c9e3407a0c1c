"""What the server knows: words to numbers, matching, and which device a change is for."""
