"""Published structures that are not a default; selectable for comparison."""
