"""The Hugging Face hub: whether it can be reached, and small files of a model by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.errors import UserError

HUB_TIMEOUT_S = 5.0
A_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def is_hub_name(name: str) -> bool:
    """Whether a model on the hub could be called so.

    >>> is_hub_name("gpt2"), is_hub_name("Qwen/Qwen3-0.6B"), is_hub_name("./gpt2/")
    (True, True, False)
    """
    return A_NAME.fullmatch(name) is not None and ".." not in name and "--" not in name


def hub_answers() -> bool:
    """Asked once, briefly: the hub's own client would retry for minutes."""
    import requests
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        requests.head(constants.ENDPOINT, timeout=HUB_TIMEOUT_S)
    except requests.RequestException:
        return False
    return True


def hub_files(name: str, files: Sequence[str]) -> Path:
    """A folder with those of `files` that a model on the hub has; the first of them is there.

    What was downloaded before, by any program that uses the hub, is taken from its local cache.
    `UserError` says that the hub does not answer, or that it does not give the first of the files.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
        if (folder / files[0]).is_file():
            return folder
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    if not hub_answers():
        raise UserError(f"{name} is not in the local cache, and no hub answers to get it from")
    disable_progress_bars()
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(files)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"the hub does not give {name} ({why})") from error
    if not (folder / files[0]).is_file():
        raise UserError(f"{name} has no {files[0]} on the hub")
    return folder
