"""The module's priorities by name: which are on, and which may be switched on."""

# Each number of the module's weights with the priorities that share it.
ADD_WEIGHT_GROUPS: dict[str, tuple[str, ...]] = {
    "1": ("LeastRequestedPriority",),
    "2": ("BalancedResourceAllocation",),
    "3": ("SelectorSpreadPriority",),
    "4": ("NodeAffinityPriority", "TaintTolerationPriority", "InterPodAffinityPriority"),
    "5": ("NodeLoadForecastPriority",),
}
REMOVE_WEIGHT_GROUPS: dict[str, tuple[str, ...]] = {
    "1": ("MostRequestedPriority",),
    "2": ("BalancedResourceAllocation",),
    "3": ("ServicePodsOnNodePriority",),
    "4": (),
    "5": ("NodeLoadForecastPriority",),
}
DEFAULT_WEIGHT = 1

ADD_PRIORITIES = tuple(name for names in ADD_WEIGHT_GROUPS.values() for name in names)
REMOVE_PRIORITIES = tuple(name for names in REMOVE_WEIGHT_GROUPS.values() for name in names)

# Off until they are given a weight. Those that need a Policy's arguments are not among them.
OPTIONAL_ADD_PRIORITIES = (
    "NodePreferAvoidPodsPriority",
    "ImageLocalityPriority",
    "MostRequestedPriority",
    "RequestedToCapacityRatioPriority",
    "ResourceLimitsPriority",
    "ServiceSpreadingPriority",
    "EqualPriority",
)


def weights_of_groups(groups: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The weights of additions and of removals by priority, from weights by number ``1`` to ``5``."""
    add, remove = (
        {name: groups.get(number, DEFAULT_WEIGHT) for number, names in table.items() for name in names}
        for table in (ADD_WEIGHT_GROUPS, REMOVE_WEIGHT_GROUPS)
    )
    return add, remove
