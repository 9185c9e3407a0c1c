"""Reads rows of the feeds into blocks: validates and projects them, and normalises keywords.

An invalid row does not affect other rows.

Operations: O(rows + keywords), a few calls of Python for each distinct keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from feeds.schemas import BOOLEAN, END, EXPIRE, PUBLISH, RETRACT, SUBSCRIBE, TOP_K
from index.batches import Floats, Ints, KeywordIds
from nearcast.checks import spellings_max, valid_keyword
from nearcast.limits import DEFAULT_LIMITS as LIMITS
from nearcast.limits import TIME_MS_MAX
from safe_region.earth.frame import Frame
from safe_region.scoring.formulas import Similarity, text_weight
from streaming.arrays.blocks import FOR_EVER_MS, Marks, Messages, Subscriptions, digests
from streaming.arrays.booleans import MARKS_MAX, marked_keywords, read_ranges
from streaming.arrays.validator import Bools, Refusals, Validator

ID_MAX = (1 << 48) - 1
"""The maximum id of subscriptions, which are handles in the engine."""
OBJECT_ID_MAX = (1 << 63) - 2
"""The engine reserves the next greater id for no object."""

SIMILARITIES = {one.name.lower(): int(one) for one in Similarity}

Weigh = Callable[[str], float]
"""Returns the weight of a keyword."""


def _numbers(column: pa.Array) -> Ints:
    """Return integers; the least int64 for null."""
    found: Ints = pc.fill_null(column, np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    return found


def _floats(column: pa.Array) -> Floats:
    """Return floats; NaN for null."""
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(column: pa.Array) -> npt.NDArray[np.object_]:
    found: npt.NDArray[np.object_] = column.to_numpy(zero_copy_only=False)
    return found


def _is_one_of(texts: npt.NDArray[np.object_], allowed: Sequence[str]) -> Bools:
    """Return which texts are allowed. Texts of numpy would lose NULs at their end."""
    return np.isin(texts, np.array(allowed, dtype=np.object_))


@dataclass(frozen=True, slots=True)
class _Words:
    """The keywords of rows: each once a row, and each distinct word once."""

    offsets: Ints
    words: KeywordIds
    marks: Marks
    high: Ints
    low: Ints
    square: Floats


def _read_words(
    column: pa.ListArray,
    validator: Validator,
    wanted: Bools,
    count_max: int,
    weigh: Weigh,
    marks: Marks | None = None,
) -> _Words:
    """Read keyword lists; those of `wanted` rows must be valid, and the others are empty.

    With `marks` of keywords, each keyword occurs once for every mark, and lists may have any length;
    `count_max` is 0 then.
    """
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if marks is None:
        is_right = (counts >= 1) & (counts <= spellings_max(count_max))
        validator.require(~wanted | is_right, f"keywords must be 1 to {count_max} keywords")
        marks = np.zeros(len(column.flatten()), dtype=np.int16)
    encoded = column.flatten().dictionary_encode()
    numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    known: dict[str, int] = {}
    # The last entry, -1, is that of null.
    final = np.array([_number_of(word, known) for word in encoded.dictionary.to_pylist()] + [-1])
    found = final[numbers]
    owners = np.repeat(np.arange(len(counts)), counts)
    is_right = np.ones(len(counts), dtype=np.bool_)
    is_right[owners[found < 0]] = False
    length = f"1 to {LIMITS.keyword_length_max} printable characters"
    validator.require(~wanted | is_right, f"each of keywords must be {length}")
    kept = (validator.is_good & wanted)[owners]
    most = max(1, len(known))
    triples = np.unique((owners[kept] * MARKS_MAX + marks[kept]) * most + found[kept])
    marked, words = np.divmod(triples, most)
    owners, own_marks = np.divmod(marked, MARKS_MAX)
    different = np.bincount(owners, minlength=len(counts))
    if count_max:
        validator.require(different <= count_max, f"keywords must be 1 to {count_max} keywords")
    offsets = np.concatenate([[0], np.cumsum(different)])
    pair = digests(list(known))
    square = np.array([weigh(word) ** 2 for word in known], dtype=np.float64)
    return _Words(
        offsets.astype(np.int64),
        words.astype(np.int32),
        own_marks.astype(np.int16),
        pair[:, 0].copy(),
        pair[:, 1].copy(),
        square,
    )


def _number_of(keyword: str, known: dict[str, int]) -> int:
    """Return the number of a keyword in its normal form; -1 if it is invalid."""
    word = valid_keyword(keyword, LIMITS.keyword_length_max)
    return known.setdefault(word, len(known)) if word else -1


def _positions(
    batch: pa.RecordBatch, validator: Validator, wanted: Bools, frame: Frame
) -> tuple[Floats, Floats]:
    """Return plane metres; 0 for rows that are not in `wanted`."""
    lon, lat = _floats(batch["lon"]), _floats(batch["lat"])
    area = frame.area
    inside = (lon >= area.lon_min) & (lon <= area.lon_max) & (lat >= area.lat_min) & (lat <= area.lat_max)
    validator.require(~wanted | inside, f"lon, lat must be in the area {','.join(map(str, area))}")
    kept = validator.is_good & wanted
    x_m = np.where(kept, (lon - frame.lon0_deg) * frame.x_m_per_deg, 0.0)
    y_m = np.where(kept, (lat - frame.lat0_deg) * frame.y_m_per_deg, 0.0)
    return x_m, y_m


def _identified(
    batch: pa.RecordBatch, validator: Validator, actions: tuple[str, ...], name: str, id_max: int
) -> Ints:
    """Validate actions, ids and times; return the ids."""
    action = _texts(batch["action"])
    validator.require(_is_one_of(action, actions), f"action must be {' or '.join(actions)}")
    ids, time_ms = _numbers(batch[name]), _numbers(batch["time_ms"])
    validator.require((ids >= 0) & (ids <= id_max), f"{name} must be 0 to {id_max}")
    in_time = (time_ms >= 0) & (time_ms <= TIME_MS_MAX)
    validator.require(in_time, f"time_ms must be 0 to {TIME_MS_MAX}")
    return ids


def read_messages(
    batch: pa.RecordBatch, frame: Frame, weigh: Weigh, latest_ms: int = TIME_MS_MAX
) -> tuple[Messages, Refusals]:
    """Read messages (`feeds.schemas.MESSAGES`), none of which may be later than `latest_ms`."""
    validator = Validator(len(batch))
    ids = _identified(batch, validator, (PUBLISH, RETRACT, EXPIRE), "object_id", OBJECT_ID_MAX)
    time_ms = _numbers(batch["time_ms"])
    validator.require(
        time_ms <= latest_ms, f"time_ms must be at most {latest_ms}, not further ahead of the clock"
    )
    is_published = _texts(batch["action"]) == PUBLISH
    x_m, y_m = _positions(batch, validator, is_published, frame)
    ttl_ms = pc.fill_null(batch["ttl_ms"], FOR_EVER_MS).to_numpy(zero_copy_only=False)
    validator.require(~is_published | (ttl_ms > 0), "ttl_ms must be above 0, or null")
    words = _read_words(batch["keywords"], validator, is_published, LIMITS.object_keywords_max, weigh)
    expiry_ms = np.where(ttl_ms < FOR_EVER_MS - TIME_MS_MAX, time_ms + ttl_ms, FOR_EVER_MS)
    block = Messages(
        *_columns(words),
        object_id=ids,
        time_ms=time_ms,
        expiry_ms=expiry_ms,
        x_m=x_m,
        y_m=y_m,
        is_retraction=(~is_published).astype(np.int8),
    )
    # Lifetimes are known, so expirations are dropped.
    is_news = _texts(batch["action"]) != EXPIRE
    return block.part(np.flatnonzero(validator.is_good & is_news)), validator.refusals()


def read_subscriptions(
    batch: pa.RecordBatch, frame: Frame, weigh: Weigh, kinds: Sequence[str] = (TOP_K, BOOLEAN)
) -> tuple[Subscriptions, Refusals]:
    """Read subscriptions (`feeds.schemas.SUBSCRIPTIONS`) of some kinds."""
    validator = Validator(len(batch))
    ids = _identified(batch, validator, (SUBSCRIBE, END), "subscription_id", ID_MAX)
    begins = _texts(batch["action"]) == SUBSCRIBE
    kind = _texts(batch["kind"])
    validator.require(~begins | _is_one_of(kind, kinds), f"kind must be {' or '.join(kinds)}")
    ranks, selects = begins & (kind == TOP_K), begins & (kind == BOOLEAN)
    k = _numbers(batch["k"].cast(pa.int64()))
    validator.require(~ranks | ((k >= 1) & (k <= LIMITS.k_max)), f"k must be 1 to {LIMITS.k_max}")
    alpha = _floats(batch["alpha"])
    in_range = (alpha >= LIMITS.alpha_min) & (alpha <= LIMITS.alpha_max)
    validator.require(~ranks | in_range, f"alpha must be {LIMITS.alpha_min} to {LIMITS.alpha_max}")
    names = _texts(batch["similarity"])
    similarity = np.array([SIMILARITIES.get(name, 0) for name in names], dtype=np.int8)
    validator.require(~ranks | (similarity > 0), f"similarity must be one of {', '.join(SIMILARITIES)}")
    found = read_ranges(batch["radius_m"], batch["bounds"], validator, selects, frame)
    x_m, y_m = _positions(batch, validator, ranks | found.is_circle, frame)
    words = _read_words(batch["keywords"], validator, ranks, LIMITS.subscription_keywords_max, weigh)
    kept = validator.is_good & ranks
    weights = [
        text_weight(one, frame.maxdist_m) if good else 0.0 for one, good in zip(alpha, kept, strict=True)
    ]
    own = {
        "subscription_id": ids,
        "time_ms": _numbers(batch["time_ms"]),
        "x_m": np.where(found.is_box, (found.x1_m + found.x2_m) / 2.0, x_m),
        "y_m": np.where(found.is_box, (found.y1_m + found.y2_m) / 2.0, y_m),
        "weight_m": np.array(weights, dtype=np.float64),
        "k": np.where(kept, k, 0),
        "similarity": np.where(kept, similarity, 0).astype(np.int8),
        "is_end": (~begins).astype(np.int8),
        "is_boolean": selects.astype(np.int8),
        "radius_m": found.radius_m,
        "x1_m": found.x1_m,
        "y1_m": found.y1_m,
        "x2_m": found.x2_m,
        "y2_m": found.y2_m,
    }
    if selects.any():
        column, marks = marked_keywords(batch["expression"], batch["keywords"], validator, selects)
        words = _read_words(column, validator, begins, 0, weigh, marks)
    block = Subscriptions(*_columns(words), marks=words.marks, **own)
    return block.part(np.flatnonzero(validator.is_good)), validator.refusals()


def _columns(words: _Words) -> tuple[Ints, KeywordIds, Ints, Ints, Floats]:
    return words.offsets, words.words, words.high, words.low, words.square
