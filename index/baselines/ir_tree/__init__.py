"""The IR-tree, which skype.txt keeps messages in: see `index.baselines.ir_tree.index`."""

from index.baselines.ir_tree.index import IrTreeObjectIndex

__all__ = ["IrTreeObjectIndex"]
