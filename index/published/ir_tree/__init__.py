"""The IR-tree, which skype.txt keeps messages in: see `index.published.ir_tree.index`."""

from index.published.ir_tree.index import IrTreeObjectIndex

__all__ = ["IrTreeObjectIndex"]
