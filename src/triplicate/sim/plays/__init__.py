"""The plays: what runs in the simulated cluster, each a kind of scenario of its own."""

from triplicate.sim.plays.base import Play
from triplicate.sim.plays.databases import DatabasePlay
from triplicate.sim.plays.ledger_load import LedgerLoad
from triplicate.sim.plays.ledgers import LedgerPlay
from triplicate.sim.plays.logs import LogPlay

PLAYS: dict[str, type[Play]] = {play.name: play for play in (LedgerPlay, LogPlay, DatabasePlay)}

__all__ = ["PLAYS", "DatabasePlay", "LedgerLoad", "LedgerPlay", "LogPlay", "Play"]
