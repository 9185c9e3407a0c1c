"""Experiments on sliding windows over stationary subscriptions, skype.txt section 8.1, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e


class SkypeParameters(e.MessageParameters, e.BudgetParameters):
    """Size and shape of a run; the defaults are those of the paper, except for sizes, data, `batch`."""

    subscriptions: int = e.count(100_000, "Number of subscriptions.")
    window: int = e.count(100_000, "Number of messages in the window, on average if `seconds` is given.")
    messages: int = e.count(
        20_000, "Maximum number of messages; a run ends earlier when its time is over."
    )
    k: int = e.count(20, "k of all subscriptions.", most=1_000)
    keywords: int = e.count(0, "Number of keywords of a subscription; 0 for 1 to 5.", least=0)
    zipf: bool = Field(
        False,
        description="Whether keywords of subscriptions are drawn by Zipf's law, and not from messages.",
    )
    seconds: int = e.count(
        0,
        "Length of a window of time; messages arrive by Poisson's law at the rate that fills the "
        "window. 0 for a window of a number of messages.",
        least=0,
    )
    batch: int = e.count(
        100,
        "Number of messages that arrive at once, in a window of a number of messages.",
        most=1_000_000,
    )
    share: float = e.share(
        0.95, "Least score of a message in the buffers of skyband, as a share of the k-th best."
    )
    factor: int = e.count(3, "Size of the buffers of kmax, as a multiple of k.")
    groups: int = e.count(10, "IGPT: groups of subscriptions in a list of a cell and a keyword.")
    audited: int = e.count(100, "Subscriptions compared with the definition.", least=0)


_PUBLISHED = "igpt-cskyband"
_MAIN = (_PUBLISHED, "ciq-kmax", "ours")
_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)


def _tuned(variant: str, name: str, values: tuple[float, ...]) -> list[e.Step]:
    """Return steps that vary a parameter of one system."""
    return [e.Step({name: value}, {name: value}, (variant,)) for value in values]


def _swept(
    figure: int, what: str, sweep: e.Sweep, *columns: str, variants: tuple[str, ...] = _MAIN
) -> e.Experiment:
    """Return a figure of the time of a message over the varied parameter."""
    return e.Experiment(
        f"figure-{figure}",
        f"Skype, Figure {figure}",
        f"time of a message by {what}",
        variants,
        sweep=sweep,
        plots=tuple(e.Lines(x, ("us_per_message",)) for x in columns),
    )


def _compared(name: str, source: str, what: str, variants: tuple[str, ...]) -> e.Experiment:
    return e.Experiment(name, source, what, variants)


SKYPE = e.Suite(
    "skype",
    "exact k best of a sliding window: time of a message that arrives and of one that expires",
    "bench.skype.run:SkypeBenchmark",
    SkypeParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "messages in the window",
        "k_max": "k",
        "messages": "messages",
        "build_s": "s",
        "amp_us": "us per message that arrives",
        "emp_us": "us per message that expires",
        "us_per_message": "us a message",
        "messages_per_s": "messages/s",
        "changes_per_message": "changes per message",
        "refills_per_message": "refills per message",
        "buffer_size": "messages per buffer",
        "bytes_per_subscription": "bytes per subscription, of the index",
        "memory_mb": "MB",
    },
    plots=(e.Bars(("amp_us", "emp_us"), ("variant", "buffer_size")),),
    reduced={"subscriptions": 10_000, "window": 10_000, "messages": 2_000, "budget_s": 5},
    about="Measures the time of a message that arrives (AMP) and of one that expires (EMP), and the "
    "size of buffers. Variants: igpt-cskyband, which is Skype, with the deviations that "
    "index/published/igpt lists; igpt-kmax, igpt-skyband, ipt-cskyband, ciq-cskyband, ciq-kmax; ours, "
    "which is the SQ+-tree with buffers by cost; and mixtures. IQF+ stores the messages of all variants "
    "except those that name another index. Once all messages of a data set are drawn, further ones are "
    "mixtures of two, and rows show their number.",
    experiments=(
        _swept(
            10,
            "number of messages in buffers",
            e.Steps(
                lambda _base: [
                    *_tuned("igpt-kmax", "factor", (1, 2, 3, 4, 5, 6)),
                    *_tuned("igpt-skyband", "share", (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)),
                    *_tuned(_PUBLISHED, "factor", (1, 6)),  # twice the same, as a line to compare with
                ]
            ),
            *("factor", "share"),
            variants=("igpt-kmax", "igpt-skyband", _PUBLISHED),
        ),
        _swept(
            11, "groups per list", e.Over("groups", (5, 10, 20, 40)), "groups", variants=(_PUBLISHED,)
        ),
        _compared(
            "figure-12", "Skype, Figure 12", "with and without groups", (_PUBLISHED, "ipt-cskyband")
        ),
        _compared(
            "figure-13",
            "Skype, Figure 13",
            "indexes of subscriptions",
            (_PUBLISHED, "ciq-cskyband", "ours"),
        ),
        _compared(
            "figure-14",
            "Skype, Figure 14, Table 4",
            "sizes of buffers",
            (_PUBLISHED, "igpt-kmax", "igpt-skyband", "ours"),
        ),
        _swept(15, "the number of keywords", e.Over("keywords", (1, 2, 3, 4, 5)), "keywords"),
        _swept(16, "k", e.Over("k", (10, 20, 30, 40, 50)), "k"),
        _swept(17, "the number of subscriptions", e.Shares(("subscriptions",), _SHARES), "subscriptions"),
        _swept(18, "the size of the window", e.Shares(("window",), _SHARES), "window"),
        e.Experiment(
            "figure-19",
            "Skype, Figure 19",
            "keywords by Zipf's law",
            _MAIN,
            {"zipf": True},
        ),
        _swept(
            20,
            "k in a window of time",
            e.Steps(
                lambda base: [
                    e.Step({"k": k, "seconds": max(2, base.window // base.batch)}, {"k": k})
                    for k in (10, 30, 50)
                ]
            ),
            "k",
        ),
        _compared("line-up", "", "all systems", ()),
    ),
)
