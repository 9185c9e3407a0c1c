"""The IR-tree, the message index of skype.txt: see `index.published.ir_tree.index`."""

from index.published.ir_tree.index import IrTreeObjectIndex

__all__ = ["IrTreeObjectIndex"]
