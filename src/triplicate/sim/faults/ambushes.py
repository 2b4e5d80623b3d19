"""Ambushes: whoever comes to a decisive moment of the protocol first, much goes wrong around it at once.

Faults at times of their own rarely meet a recovery that copies, or a change of ensemble that is being written; and few losses need one
fault only. So an ambush waits at a fault point of clients and then strikes bookies, the node that came, and the metadata together.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from triplicate.sim.faults import metadata, processes
from triplicate.sim.faults.kind import Targets, undone
from triplicate.sim.plan import Strike, Value
from triplicate.sim.stage import Stage

MOMENTS = (
    "client.recovery.marked",
    "client.recovery.fenced",
    "client.recovery.read_on",
    "client.recovery.copying",
    "client.recovery.copying",
    "client.recovery.copied",
    "client.recovery.closing",
    "client.ensemble_change.chosen",
    "client.ensemble_change.chosen",
    "client.ensemble_change.written",
    "client.ensemble_change.written",
    "client.close.writing",
)
AMBUSHES_MAX = 4
LURES_MAX = 8
WAIT_S = 8.0
"""Nobody is struck where nobody comes within this time."""
LATER_S = (0.0, 0.0005, 0.003, 0.02)
DOWN_S = (0.05, 0.05, 0.5, 2.0)
STALL_FACTOR = 100.0


def draw_ambushes(chance: random.Random, targets: Targets, duration_s: float) -> tuple[Strike, ...]:
    """None, one, or a few for one run, where its nodes come to such moments; and what brings them there: bookies that fail writers."""
    count, lures = chance.randrange(AMBUSHES_MAX + 1), chance.randrange(LURES_MAX + 1)
    drawn = [draw(chance, targets, duration_s * chance.uniform(0.05, 0.75)) for _ in range(count)]
    if targets.clients:
        drawn += [_draw_lure(chance, targets, duration_s * chance.uniform(0.05, 0.75)) for _ in range(lures)]
    return tuple(strike for strike in drawn if strike is not None)


def _draw_lure(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """A bookie that is gone, or silent, for a moment."""
    bookie = chance.choice(targets.bookies)
    match chance.choice(["kill", "crash", "pause", "link_block"]):
        case "kill":
            return Strike("kill", at_s, bookie, lasts_s=0.5, options={"silent": False})
        case "crash":
            return Strike("crash", at_s, bookie, lasts_s=2.0, options={"silent": True})
        case "pause":
            return Strike("pause", at_s, bookie, lasts_s=1.5)
        case _:
            return Strike("link_block", at_s, bookie, chance.choice(targets.clients), lasts_s=2.0)


def draw(chance: random.Random, targets: Targets, at_s: float) -> Strike | None:
    """One ambush."""
    moments = [name for name in MOMENTS if name in targets.points]
    if not moments:
        return None
    point = chance.choice(moments)
    is_change = point.startswith("client.ensemble_change")
    options: dict[str, Value] = {
        "point": point,
        "skip": chance.choice([0, 0, 1, 3]),
        "later_s": chance.choice(LATER_S),
        # All of them, where that is more than there are.
        "bookies": chance.choice([0, 1, 1, 2, 2, 99]),
        "of_bookies": chance.choice(["kill", "crash"]),
        "node": chance.choice(["", "kill", "kill", "pause"] if is_change else ["", "", "kill", "pause"]),
        "stall": chance.random() < 0.3,
        "silent": chance.random() < 0.3,
        # What was struck is found by a recovery, which has its own ambush.
        "then": chance.choice([0, 1, 2] if is_change else [0, 0, 0, 1]),
    }
    return Strike("ambush", at_s, lasts_s=chance.choice(DOWN_S), options=options)


async def ambush(stage: Stage, strike: Strike) -> None:
    """Wait until somebody comes to the point, then strike, and undo everything."""
    came = asyncio.Event()
    who: list[str] = []

    options = strike.options

    def come(node: str) -> None:
        who.append(node)
        came.set()
        if options.get("stall"):
            # Now: what the node is about to write is to be slow already.
            stage.cluster.options.metadata_slowness = STALL_FACTOR

    trap = stage.world.points.strike(str(options["point"]), come, skip=int(options.get("skip", 0)))
    with undone(trap.cancel):
        try:
            async with asyncio.timeout(WAIT_S):
                await came.wait()
        except TimeoutError:
            return
    await asyncio.sleep(float(options.get("later_s", 0.0)))
    stage.strike("ambush", node=who[0], point=str(options["point"]))
    struck = [stage.world.loop.begin(part, name=str(strike)) for part in _parts(stage, strike, who[0])]
    if options.get("then"):
        following: dict[str, Value] = {"point": "client.recovery.copying", "bookies": options["then"], "silent": options["silent"]}
        await ambush(stage, replace(strike, options=following))
    for part in struck:
        await part


def _parts(stage: Stage, strike: Strike, node: str) -> list[Coroutine[Any, Any, None]]:
    chance, options = stage.chance("ambush", strike.at_s), strike.options
    silent = {"silent": bool(options.get("silent"))}
    names = list(stage.cluster.bookies)
    bookies = chance.sample(names, min(len(names), int(options.get("bookies", 0))))
    kind = str(options.get("of_bookies", "kill"))
    parts = [processes.take_down(stage, Strike(kind, strike.at_s, name, lasts_s=strike.lasts_s, options=silent)) for name in bookies]
    match options.get("node"):
        case "kill":
            parts.append(processes.take_down(stage, Strike("kill", strike.at_s, node, lasts_s=strike.lasts_s, options=silent)))
        case "pause":
            parts.append(processes.pause(stage, Strike("pause", strike.at_s, node, lasts_s=max(0.5, strike.lasts_s))))
    if options.get("stall"):
        parts.append(metadata.slow(stage, Strike("metadata_slow", strike.at_s, lasts_s=2.0, options={"factor": STALL_FACTOR})))
    return parts
