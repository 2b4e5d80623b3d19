"""The client room: ledgers for programs."""

from triplicate.client.adds import Payload
from triplicate.client.adv_writer import AdvLedgerWriter
from triplicate.client.authentication import Authenticator
from triplicate.client.client import WRITER_AWAITED, BookieInfo, Client
from triplicate.client.connect import connect
from triplicate.client.reader import LedgerReader
from triplicate.client.tail import Tail
from triplicate.client.write_handle import WriteHandle
from triplicate.client.writer import LedgerWriter
from triplicate.config import ClientSettings

__all__ = [
    "WRITER_AWAITED",
    "AdvLedgerWriter",
    "Authenticator",
    "BookieInfo",
    "Client",
    "ClientSettings",
    "LedgerReader",
    "LedgerWriter",
    "Payload",
    "Tail",
    "WriteHandle",
    "connect",
]
