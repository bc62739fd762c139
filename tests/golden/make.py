"""Write the golden networks: `python -m tests.golden.make`. Only for a change of results that is meant and noted."""

import torch
from safetensors.torch import save_file

from tests.test_model import GOLDEN, SHAPES, network, some_texts


def main() -> None:
    """Weights, input and results of three tiny networks."""
    for name in ("paper", "columns", "attended"):
        made = network(seed=7, **SHAPES[name]).float()
        ids = some_texts(0, 2, 7, 12)
        with torch.no_grad():
            output = made(ids)
        tensors = {f"network.{key}": value.clone() for key, value in made.state_dict().items()}
        tensors |= {"ids": ids, "scores": output.scores, "children": output.columns[0].children.values}
        save_file({key: value.contiguous() for key, value in tensors.items()}, GOLDEN / f"{name}.safetensors")


if __name__ == "__main__":
    main()
