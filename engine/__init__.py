"""The engine: exact results for all subscriptions. Pure: no I/O, no clock of its own, no asyncio."""

from engine.batches import CostModel, EngineOptions, Pending, Positions, Published
from engine.engine import Engine
from engine.top_k.evaluation import Choice

__all__ = ["Choice", "CostModel", "Engine", "EngineOptions", "Pending", "Positions", "Published"]
