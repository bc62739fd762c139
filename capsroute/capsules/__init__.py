"""Features -> children: squash, primary capsules, compression, votes, relations."""

from capsroute.capsules.compression import make_compression
from capsroute.capsules.primary import PrimaryCapsules
from capsroute.capsules.relations import CapsuleGraph, Wasserstein, distance_matrix, relation, row_entropy
from capsroute.capsules.squash import squash
from capsroute.capsules.votes import make_votes

__all__ = [
    "CapsuleGraph",
    "PrimaryCapsules",
    "Wasserstein",
    "distance_matrix",
    "make_compression",
    "make_votes",
    "relation",
    "row_entropy",
    "squash",
]
