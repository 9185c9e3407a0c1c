"""The bridge: objects come from a feed of messages, and changes of objects go to one."""
