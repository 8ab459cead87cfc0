"""Whether a model hub can be reached; asked only where a model may want one."""

from __future__ import annotations

import os
import socket

_HUB = ("huggingface.co", 443)
_TIMEOUT_S = 2.0


def hub_is_reachable() -> bool:
    """Try to connect to the hub, unless the environment says to stay offline."""
    if os.environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}:
        return False
    try:
        socket.create_connection(_HUB, timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True
