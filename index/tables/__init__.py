"""Building blocks of every index: a hash of ids, rows with keyword lists, a heap of the best."""

from index.tables.id_map import IdMap
from index.tables.slots import SlotTable

__all__ = ["IdMap", "SlotTable"]
