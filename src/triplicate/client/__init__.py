"""The client room: ledgers for programs."""

from triplicate.client.client import WRITER_AWAITED, Client
from triplicate.client.connect import connect
from triplicate.client.reader import LedgerReader
from triplicate.client.tail import Tail
from triplicate.client.writer import LedgerWriter, Payload
from triplicate.config import ClientSettings

__all__ = [
    "WRITER_AWAITED",
    "Client",
    "ClientSettings",
    "LedgerReader",
    "LedgerWriter",
    "Payload",
    "Tail",
    "connect",
]
