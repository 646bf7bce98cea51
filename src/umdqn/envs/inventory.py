"""An inventory with random demand: a long horizon, random rewards, no end.

Importing this module registers it with Gymnasium.
"""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import gymnasium
import numpy as np

from umdqn.envs.entry import Entry, Resolver, list_compiled
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.setup import Setup
from umdqn.envs.tabular import FiniteEnvironment, TabularEnv, finite_entry, register

NAME = "inventory"
ID = "umdqn/Inventory-v0"

CAPACITY = 10
"""The largest stock; what is ordered beyond it is not delivered, and not paid."""
LARGEST_ORDER = 4
MEAN_DEMAND = 2.0
LARGEST_DEMAND = 8
PRICE, COST, ORDER_COST, HOLDING_COST = 3.0, 1.0, 1.0, 0.1
"""Price and cost of a unit, cost of any order, and cost of a unit that stays for a step."""
TIME_LIMIT = 200


def demand() -> np.ndarray:
    """Return the probability of each demand: Poisson, conditioned on at most `LARGEST_DEMAND`."""
    weights = [MEAN_DEMAND**n / math.factorial(n) for n in range(LARGEST_DEMAND + 1)]
    return np.array(weights) / sum(weights)


def inventory_mdp() -> FiniteMdp:
    """Return the tables: states are stocks, actions are orders, outcomes are demands.

    An order arrives at once; then as much of the demand is sold as there is in stock.
    """
    stock, order, wanted = np.meshgrid(
        np.arange(CAPACITY + 1),
        np.arange(LARGEST_ORDER + 1),
        np.arange(LARGEST_DEMAND + 1),
        indexing="ij",
    )
    delivered = np.minimum(order, CAPACITY - stock)
    sold = np.minimum(stock + delivered, wanted)
    left = stock + delivered - sold
    costs = COST * delivered + ORDER_COST * (delivered > 0) + HOLDING_COST * left
    return FiniteMdp(
        probability=np.broadcast_to(demand(), stock.shape),
        next_state=left,
        reward=PRICE * sold - costs,
        name=NAME,
        action_names=tuple(f"ORDER {units}" for units in range(LARGEST_ORDER + 1)),
        time_limit=TIME_LIMIT,
    )


class InventoryEnv(TabularEnv):
    """The inventory for Gymnasium; `gymnasium.make` truncates episodes."""

    def __init__(self, render_mode: str | None = None):
        super().__init__(inventory_mdp(), render_mode)


class Inventories(Resolver):
    """The name `inventory`."""

    compiled = FiniteEnvironment(inventory_mdp())
    listings: ClassVar = {NAME: list_compiled(compiled)}

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        if name not in self.listings:
            return None
        return finite_entry(self.compiled, setup, partial(gymnasium.make, ID))


register(ID, InventoryEnv, TIME_LIMIT)
