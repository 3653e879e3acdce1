"""The blocks of a denoising network, found by its structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recombine.errors import BadInput

if TYPE_CHECKING:
    import torch

MOST_BLOCKS = 16
"""So many are looked into, evenly chosen."""


def find_blocks(network: torch.nn.Module, most: int = MOST_BLOCKS) -> dict[str, torch.nn.Module]:
    """Blocks by name in the order of the computation: of a U-Net down, mid and up, of a transformer its lists of blocks."""
    from torch import nn

    found: dict[str, nn.Module] = {}
    if hasattr(network, "down_blocks") and hasattr(network, "up_blocks"):
        for name in ("down_blocks", "mid_block", "up_blocks"):
            part = getattr(network, name, None)
            if isinstance(part, nn.ModuleList):
                found |= {f"{name}.{index}": one for index, one in enumerate(part)}
            elif isinstance(part, nn.Module):
                found[name] = part
    else:
        for name, part in network.named_children():
            if isinstance(part, nn.ModuleList) and all(any(one.children()) for one in part):
                found |= {f"{name}.{index}": one for index, one in enumerate(part)}
    if not found:
        raise BadInput(
            f"{type(network).__name__} has no blocks: neither down, mid and up nor a list of them.",
            fix="give a pipeline with a U-Net or a transformer made of blocks",
        )
    names = list(found)
    if len(names) > most:
        names = [names[place] for place in np.linspace(0, len(names) - 1, most).round().astype(int)]
    return {name: found[name] for name in names}
