"""The reaches of the subscriptions of a sample, over its messages.

A sample has a fraction, `share`, of the messages that a window can hold. The k-th best message of a
window is about as good as number k * share of a sample with that fraction of it, so that is the k that is
used.

Operations: an evaluation for each subscription.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine import EngineOptions
from engine.contracts import STATIONARY, handle_of
from streaming.distribution import Sample
from streaming.partition.alone import Alone
from streaming.window_size import WindowSize


def with_reaches(sample: Sample, options: EngineOptions, share: float) -> Sample:
    """Return the sample with the reaches of its subscriptions.

    Parameters
    ----------
    sample
        Its subscriptions are top-k ones.
    options
        The options of the engine.
    share
        The fraction of the window that its messages are, above 0 and at most 1.
    """
    subscriptions, messages = sample.subscriptions, sample.messages
    if not len(subscriptions) or not len(messages):
        return sample
    fewer = np.maximum(1, np.ceil(subscriptions.k * share)).astype(np.int64)
    alone = Alone(options, WindowSize(count=len(messages)))
    alone.apply(replace(subscriptions, k=fewer), messages)
    table = alone.partition.matcher.subscriptions
    slots = table.slots(handle_of(STATIONARY, 0) + subscriptions.subscription_id)
    return replace(sample, reach_m=table.rows["reach_m"][slots])
