"""Whom a new object concerns, of boolean subscriptions: ap-tree.txt section 5.1, and peers."""
