"""The saved position of a named consumer: its value and its JSON. `docs/formats/log.md` fixes the form."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import CorruptionError
from triplicate.log.core.head import Owner, dump_node, load_node

CONSUMER_VERSION = 1


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """A consumer's node.

    Args:
        log_id: of the log that the position belongs to.
        position: offset of the first record that is not consumed.
        owner: the process that opened the consumer last, or reset it; only it saves.
        saved_ms: when the position was saved, by the saver's clock.
    """

    log_id: str
    position: int
    owner: Owner
    saved_ms: int


def encode_consumer(state: ConsumerState) -> bytes:
    """A consumer's node."""
    return dump_node(
        {
            "id": state.log_id,
            "owner": {"name": state.owner.name, "token": state.owner.token},
            "position": state.position,
            "saved": state.saved_ms,
            "v": CONSUMER_VERSION,
        },
        "a consumer's node",
    )


def decode_consumer(data: bytes, log: str, consumer: str) -> ConsumerState:
    """Read a consumer's node.

    Raises:
        FormatError: of a later release. CorruptionError: any other invalid content.
    """
    what = f"the position of consumer {consumer!r} of log {log!r}"
    value = load_node(data, what, CONSUMER_VERSION)
    try:
        owner = value["owner"]
        return ConsumerState(value["id"], value["position"], Owner(owner["name"], owner["token"]), value["saved"])
    except (KeyError, TypeError) as error:
        raise CorruptionError(f"{what} lacks a field or has a wrong one: {error!r}") from error
