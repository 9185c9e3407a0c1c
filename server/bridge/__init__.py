"""The bridge: objects come from a feed of messages, and what happens to objects goes to one."""
