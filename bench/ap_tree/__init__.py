"""Find the boolean subscriptions that a new object matches: ap-tree.txt section 5.1, and peers."""
