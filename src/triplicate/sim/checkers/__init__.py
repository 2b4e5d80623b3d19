"""The judges of what clients saw. They know nothing of the code that they judge, and each is held to written histories, good and bad."""

from triplicate.sim.checkers.history import Checker, History, Verdict, judge
from triplicate.sim.checkers.promises import CHECKERS, Acknowledged, Copy, Ended, Event, Read, Sent, Tailed

__all__ = ["CHECKERS", "Acknowledged", "Checker", "Copy", "Ended", "Event", "History", "Read", "Sent", "Tailed", "Verdict", "judge"]
