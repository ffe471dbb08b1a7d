"""Rules of resources as data: what a compiled loop needs to apply them to one row. Knows no plugin.

The plugins' ``filter`` and ``score`` in NumPy are the truth; where a plugin gives a rule, it says the same in numbers.
"""

from enum import IntEnum
from typing import NamedTuple


class RuleKind(IntEnum):
    """What is made of the amounts asked, used and offered."""

    FITS = 0
    """Every amount asked is free."""
    LEAST_ALLOCATED = 1
    """The weighted mean of what is free, of the resources that the node has (1.36)."""
    MOST_ALLOCATED = 2
    """The weighted mean of what is used, likewise."""
    BALANCED_GAIN = 3
    """How much more even the shares of two resources get (1.36)."""
    LEAST_REQUESTED = 4
    """The mean of what is free of two resources, whether the node has them or not (up to 1.17)."""
    MOST_REQUESTED = 5
    """The mean of what is used, likewise; overfull is 0."""
    BALANCED_SHARES = 6
    """How alike the shares of two resources are (up to 1.17)."""


class Term(NamedTuple):
    """One resource in a rule.

    Attributes
    ----------
    counts_silent : bool
        Whether what is used counts defaults for containers that ask for nothing.
    asked : int
        What the pod adds. [milli-CPU, bytes or a count]
    """

    resource_id: int
    asked: int
    counts_silent: bool = False
    weight: int = 1


class Rule(NamedTuple):
    """A rule over resources; without terms, a filter lets every row pass and a score is 0."""

    kind: RuleKind
    terms: tuple[Term, ...]
    maximum: int = 0
