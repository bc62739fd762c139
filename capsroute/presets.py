"""Whole networks by name: what a new user gets, the paper's, and the two it compares itself with.

    default     graph routing over what children read by content, not by place: 1- to 3-grams of every position
    paper       Li et al., Graph Routing between Capsules: one column of trigrams, 50 children of 64, graph routing
    capsule_a   Zhao et al. 2018: trigrams, 32 kinds of 16, a convolutional capsule layer, leaky routing, an orphan
    capsule_b   three such columns, for 3-, 4- and 5-grams; their class capsules are averaged

>>> capsule_b(vocabulary=1000, classes=4).columns
((3,), (4,), (5,))
"""

from collections.abc import Callable

from capsroute.model import ConvolutionConfig, NetworkConfig


def default(*, vocabulary: int, classes: int, max_length: int = 100) -> NetworkConfig:
    """Graph routing that learns from a few thousand texts in minutes.

    Against the paper's network: children attend to what stands in a text wherever it stands (the paper's weights are
    bound to positions, so that a word must be learned anew at each), n-grams of 1 to 3 words at every position in
    place of trigrams at every second, fewer and smaller capsules, and dropout of the words.
    """
    return NetworkConfig(
        vocabulary=vocabulary,
        classes=classes,
        max_length=max_length,
        word_dim=200,
        columns=((1, 2, 3),),
        filters=100,
        stride=1,
        dropout=0.5,
        kinds=16,
        dim=16,
        compression="attended",
        children=16,
    )


def paper(*, vocabulary: int, classes: int, max_length: int = 100) -> NetworkConfig:
    """The paper's network, which is what NetworkConfig holds by default."""
    return NetworkConfig(vocabulary=vocabulary, classes=classes, max_length=max_length)


def capsule_a(
    *, vocabulary: int, classes: int, max_length: int = 100, columns: tuple[tuple[int, ...], ...] = ((3,),)
) -> NetworkConfig:
    """Capsule-A with the stride (2) and the shared votes of its published code."""
    return NetworkConfig(
        vocabulary=vocabulary,
        classes=classes,
        max_length=max_length,
        columns=columns,
        filters=32,
        kinds=32,
        dim=16,
        convolution=ConvolutionConfig(width=3, kinds=16),
        compression="none",
        children=None,
        votes="shared",
        orphan=True,
        routing="leaky",
    )


def capsule_b(*, vocabulary: int, classes: int, max_length: int = 100) -> NetworkConfig:
    """Capsule-B: Capsule-A three times."""
    columns = ((3,), (4,), (5,))
    return capsule_a(vocabulary=vocabulary, classes=classes, max_length=max_length, columns=columns)


PRESETS: dict[str, Callable[..., NetworkConfig]] = {
    "default": default,
    "paper": paper,
    "capsule_a": capsule_a,
    "capsule_b": capsule_b,
}
