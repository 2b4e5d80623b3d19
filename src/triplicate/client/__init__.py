"""The client room: ledgers for programs."""

from triplicate.client.bookie_copies import BookieCopies, CopyStream
from triplicate.client.bookie_space import BookieInfo
from triplicate.client.client import WRITER_AWAITED, Client
from triplicate.client.connect import connect
from triplicate.client.connection.authentication import Authenticator, ConnectionAuthenticator
from triplicate.client.read.ledger_reader import LedgerReader
from triplicate.client.read.tail import Tail
from triplicate.client.write.add_pipeline import Payload
from triplicate.client.write.adv_writer import AdvLedgerWriter
from triplicate.client.write.ledger_writer import LedgerWriter
from triplicate.client.write.write_handle import WriteHandle
from triplicate.config import ClientSettings

__all__ = [
    "WRITER_AWAITED",
    "AdvLedgerWriter",
    "Authenticator",
    "BookieCopies",
    "BookieInfo",
    "Client",
    "ClientSettings",
    "ConnectionAuthenticator",
    "CopyStream",
    "LedgerReader",
    "LedgerWriter",
    "Payload",
    "Tail",
    "WriteHandle",
    "connect",
]
