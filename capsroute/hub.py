"""A saved model brought to the Hugging Face Hub, for those who have its package and a login."""

from importlib import import_module
from pathlib import Path
from typing import Any


def upload(folder: Path, repository: str, *, private: bool) -> str:
    """Upload the files of a folder; the address where they are now."""
    try:
        api: Any = import_module("huggingface_hub").HfApi()
    except ImportError as error:
        raise ImportError("push_to_hub needs a package: pip install huggingface_hub.") from error
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repository, folder_path=str(folder)))
    # The package, its HTTP library and the system each have errors of their own for a name, a login or a network.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConnectionError(
            f"the model could not be uploaded to '{repository}' ({reason}): look at the name, "
            "your login (`hf auth login`) and the network."
        ) from error
