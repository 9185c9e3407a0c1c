"""Compute exact results for all subscriptions: arrays in, arrays out. No I/O, no clock, no asyncio."""

from engine.contracts import Bounds, Positions, Published
from engine.engine import Engine
from engine.options import CostModel, EngineOptions

__all__ = ["Bounds", "CostModel", "Engine", "EngineOptions", "Positions", "Published"]
