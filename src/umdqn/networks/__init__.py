"""Networks: the torso that embeds an observation, and the UMNN."""

from umdqn.networks.dense import Linear, Mlp
from umdqn.networks.torsos import Convolutions, Torso
from umdqn.networks.umnn import Umnn

__all__ = ["Convolutions", "Linear", "Mlp", "Torso", "Umnn"]
