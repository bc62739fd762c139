"""The network: token ids -> n-gram features -> primary capsules -> children -> routing -> class capsules.

>>> network = CapsuleNetwork(NetworkConfig(vocabulary=100, classes=4, word_dim=8, kinds=4, dim=8, children=6))
>>> network(torch.randint(1, 100, (2, 11))).scores.shape
torch.Size([2, 4])
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.capsules.compression import Children, Compression, CompressionName, make_compression
from capsroute.capsules.convolution import ConvolutionalCapsules
from capsroute.capsules.guards import is_a, whole, yes_or_no
from capsroute.capsules.primary import PrimaryCapsules
from capsroute.capsules.scales import pull_of_positions, vote_length
from capsroute.capsules.squash import SQUASHES, SquashKind, length
from capsroute.capsules.votes import Vote, VotesName, make_votes
from capsroute.checks import one_of, unknown
from capsroute.encoders.base import Features
from capsroute.encoders.ngram import NgramEncoder, are_columns, check_ids
from capsroute.encoders.windows import window_count
from capsroute.routing import ROUTINGS, Routed, Routing, make_routing


@dataclass(frozen=True)
class ConvolutionConfig:
    """A convolutional capsule layer between primary capsules and compression (Capsule-A and Capsule-B)."""

    width: int = 3
    kinds: int = 16
    iterations: int = 3

    def __post_init__(self) -> None:
        for setting in fields(self):
            whole(f"{setting.name} of the convolution", getattr(self, setting.name), 1)


@dataclass(frozen=True)
class NetworkConfig:
    """The sizes and choices of a network. The defaults are the paper's.

    Args:
        vocabulary: number of token ids, the padding id 0 included.
        classes: number of labels.
        max_length: tokens of the longest text to plan for: it sizes the positional compression and sets scales;
            longer texts work.
        columns: the n-gram widths of each column. Columns share the words alone; their class capsules are averaged.
        dropout: of the word vectors, in training.
        squash: of the primary capsules; that of the class capsules is an option of the routing.
        orphan: one more class capsule that is never a target, for what belongs to no class.
        children: capsules that are routed; None with compression "none", which keeps them all.
        vote_rank: for votes "low_rank".
        iterations: passes; None: the method's own number.
        routing_options: the method's own; `routing_options(name)` lists them.
    """

    vocabulary: int
    classes: int
    max_length: int = 100
    word_dim: int = 300
    columns: tuple[tuple[int, ...], ...] = ((3,),)
    filters: int = 64
    stride: int = 2
    dropout: float = 0.0
    kinds: int = 64
    dim: int = 64
    squash: SquashKind = "sabour"
    convolution: ConvolutionConfig | None = None
    compression: CompressionName = "positional"
    children: int | None = 50
    votes: VotesName = "unshared"
    vote_rank: int | None = None
    orphan: bool = False
    routing: str = "graph"
    iterations: int | None = None
    routing_options: Mapping[str, str | float | bool] = field(default_factory=dict[str, str | float | bool])

    def __post_init__(self) -> None:
        whole("classes", self.classes, 1)
        whole("max_length", self.max_length, 1)
        yes_or_no("orphan", self.orphan)
        one_of("squash", self.squash, SQUASHES)
        one_of("compression", self.compression, get_args(CompressionName))
        if not are_columns(self.columns):
            raise ValueError(
                f"columns must name at least one n-gram width each, as in ((3,), (4,)), but are {self.columns!r}."
            )
        if self.convolution is not None:
            is_a("convolution", self.convolution, ConvolutionConfig)
        taken = sorted({"children", "parents", "dim", "iterations"} & set(self.routing_options))
        if taken:
            raise ValueError(f"routing_options hold {', '.join(taken)}, which the network itself sets.")
        several = any(len(widths) > 1 for widths in self.columns)
        if several and self.compression == "positional":
            raise ValueError(
                "positional compression reads the positions of one n-gram width: use one width a column, "
                "columns=((3,), (4,)), or compression 'attended' or 'pooled'."
            )
        if several and self.convolution:
            raise ValueError("convolutional capsules read neighbours of one n-gram width: use one width a column.")
        if self.convolution and self.compression in ("pooled", "attended"):
            raise ValueError(
                f"{self.compression} compression reads the n-grams themselves, and convolutional capsules stand in "
                "between: use compression 'positional' or 'none'."
            )
        if self.compression == "none" and self.votes != "shared":
            raise ValueError("without compression the number of children varies: votes must be 'shared'.")

    @property
    def parents(self) -> int:
        """Class capsules, the orphan included."""
        return self.classes + self.orphan

    def to_json(self) -> dict[str, Any]:
        """The config as plain values, for json.dumps."""
        return asdict(self) | {"columns": [list(widths) for widths in self.columns]}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "NetworkConfig":
        """The config that `to_json` wrote; settings that are missing have their defaults."""
        _only_known("setting of a network", settings, cls)
        for name in ("vocabulary", "classes"):
            if name not in settings:
                raise ValueError(f"the settings of a network must hold {name}, but hold: {', '.join(settings)}.")
        given = dict(settings)
        if "columns" in given:
            given["columns"] = tuple(tuple(widths) for widths in given["columns"])
        if given.get("convolution") is not None:
            _only_known("setting of a convolution", given["convolution"], ConvolutionConfig)
            given["convolution"] = ConvolutionConfig(**given["convolution"])
        return cls(**given)


def _only_known(what: str, settings: Mapping[str, Any], cls: type) -> None:
    names = [setting.name for setting in fields(cls)]
    for name in settings:
        if name not in names:
            raise unknown(what, name, names)


class ColumnOutput(NamedTuple):
    """Everything that one column computed."""

    features: Features
    children: Children
    routed: Routed


class Output(NamedTuple):
    """What a network returns."""

    scores: Float[Tensor, "batch class"]  # in [0, 1]: the lengths of the class capsules
    activation: Float[Tensor, "batch parent"]  # the same with the orphan's, for the loss
    parents: Float[Tensor, "batch parent dim"]  # class capsules, the mean over the columns
    columns: tuple[ColumnOutput, ...]


class Column(nn.Module):
    """Features -> class capsules: the capsule half of the network, once for each column."""

    def __init__(
        self,
        primary: PrimaryCapsules | ConvolutionalCapsules,
        compression: Compression,
        vote: Vote | None,
        routing: Routing,
    ) -> None:
        super().__init__()
        self.primary = primary
        self.compression = compression
        self.vote = vote
        self.routing = routing

    def forward(self, features: Features) -> ColumnOutput:
        children = self.compression(features.values, features.mask, self.primary)
        return ColumnOutput(features, children, self.routing(children.values, self.vote, children.mask))


class CapsuleNetwork(nn.Module):
    """A classifier of texts. Weights are drawn from torch's generator: seed it first."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        is_a("config", config, NetworkConfig)
        self.config = config
        self.encoder = NgramEncoder(
            vocabulary=config.vocabulary,
            word_dim=config.word_dim,
            columns=config.columns,
            filters=config.filters,
            stride=config.stride,
            dropout=config.dropout,
        )
        # Routings come last: one seed then draws the same words, primaries and votes whatever the routing is.
        below = [_below_routing(config, self.encoder, column) for column in range(len(config.columns))]
        self.columns = nn.ModuleList(_column(config, *parts) for parts in below)

    def forward(self, ids: Tensor) -> Output:
        """Token ids [batch, token], 0 for padding -> scores, and all that led to them."""
        features = self.encoder(check_ids(ids))
        columns = tuple(column(seen) for column, seen in zip(self.columns, features, strict=True))
        parents = torch.stack([column.routed.parents for column in columns]).mean(dim=0)
        activation = self._activation(parents, columns)
        return Output(activation[:, : self.config.classes], activation, parents, columns)

    def _activation(self, parents: Tensor, columns: tuple[ColumnOutput, ...]) -> Tensor:
        """The routing's own scores; of several columns the length of the mean capsule, as in Capsule-B."""
        if len(columns) == 1:
            return columns[0].routed.activation
        if ROUTINGS[self.config.routing].activation_is_length:
            return length(parents)
        return torch.stack([column.routed.activation for column in columns]).mean(dim=0)


Below = tuple[PrimaryCapsules | ConvolutionalCapsules, Compression, Vote]


def _below_routing(config: NetworkConfig, encoder: NgramEncoder, column: int) -> Below:
    """Primary capsules, compression and votes of a column."""
    primary: PrimaryCapsules | ConvolutionalCapsules = PrimaryCapsules(
        features=config.filters,
        kinds=config.kinds,
        dim=config.dim,
        squash=config.squash,
        feature_rms=encoder.feature_rms,
    )
    positions = encoder.positions(config.max_length, column)
    if config.convolution:
        primary = _convolution(config.convolution, primary)
        positions = window_count(positions, primary.width, primary.stride)
    compression = make_compression(
        config.compression,
        children=config.children,
        positions=positions,
        kinds=primary.kinds,
        features=config.filters,
        capsule_length=primary.initial_length,
        coherence=primary.coherence,
    )
    vote = make_votes(
        config.votes,
        children=compression.nominal_children,
        parents=config.parents,
        dim=config.dim,
        rank=config.vote_rank,
    )
    return primary, compression, vote


def _convolution(config: ConvolutionConfig, primary: PrimaryCapsules) -> ConvolutionalCapsules:
    """The layer of Capsule-A: shared votes and leaky routing within every window."""
    window = config.width * primary.kinds
    vote = make_votes("shared", children=window, parents=config.kinds, dim=primary.dim)
    routing = make_routing(
        "leaky", children=None, parents=config.kinds, dim=primary.dim, iterations=config.iterations
    )
    pull = pull_of_positions(config.width, primary.coherence)
    _scale_votes(vote, routing, window, primary.initial_length, pull)
    return ConvolutionalCapsules(primary, vote, routing, kinds=config.kinds, width=config.width)


def _column(
    config: NetworkConfig,
    primary: PrimaryCapsules | ConvolutionalCapsules,
    compression: Compression,
    vote: Vote,
) -> Column:
    routing = make_routing(
        config.routing,
        children=config.children,
        parents=config.parents,
        dim=config.dim,
        iterations=config.iterations,
        **config.routing_options,
    )
    children = compression.nominal_children
    _scale_votes(vote, routing, children, compression.initial_length, compression.pull)
    return Column(primary, compression, vote if routing.needs_vote else None, routing)


def _scale_votes(vote: Vote, routing: Routing, children: int, child_length: float, pull: float) -> None:
    """Give the votes, drawn as long as the children, the length that puts class capsules in the middle."""
    vote.rescale(vote_length(children, vote.spread, routing.initial_gain(children), pull) / child_length)
