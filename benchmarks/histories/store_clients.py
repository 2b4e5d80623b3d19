"""Clients that change and read the keys of a store by Redis' protocol, and record each operation's start, end and outcome.

Keys come in groups of `KEYS`. Single commands, batches (MULTI and EXEC, also behind WATCH; MGET, MSET) and pipelines change the keys of one
group, which is judged as one register. Wanderers ask one node after the other for linearizable reads, leader or not, and wait for long: a
leader that was stopped, or cut off, answers them late or not at all, and never with what has been replaced meanwhile.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.histories.clients import OPERATION_LIMIT_S, Shared
from benchmarks.histories.cluster import POLL_S, Address
from benchmarks.histories.resp_connection import NOT_DONE, UNKNOWN, Command, ConnectionEnded, RespConnection, code_of, is_refusal
from benchmarks.histories.stages import Kind, Result
from benchmarks.histories.store_model import Answer, Part, Step, Unchanged, operation_of

GROUP = "group"
KEYS = 3
"""Keys of a group."""
GROUPS_AT_A_TIME = 4
VALUE_STEP = 1000
"""Values are multiples of it, so that no count of increments of one is another."""
WANDERER_LIMIT_S = 12.0
PAUSE_S = 0.002
WANDERERS_PAUSE_S = 0.1
WANDERERS_MOVE = 0.1
"""Share of a wanderer's reads after which it goes to another node."""


class NotAnswered(Exception):
    """The operation was refused, or its outcome is unknown."""


def command_of(key: str, step: Step) -> Command:
    """A step as a command of Redis' protocol, on a key by name."""
    value = "" if step.value is None else step.value
    match step.command:
        case "set":
            return ("SET", key, value)
        case "setnx":
            return ("SET", key, value, "NX")
        case "cas":
            return ("TRIPLICATE.CAS", key, str(step.expected), value)
        case "getset":
            return ("SET", key, value, "GET")
        case _:
            return (step.command.upper(), key)


def answer_of(step: Step, answer: Any) -> Answer:
    """The answer of the model for an answer of the server that is no error."""
    match step.command:
        case "get" | "getset" | "getdel":
            return None if answer is None else int(answer)
        case "set" | "setnx":
            return answer is not None
        case "cas" | "del":
            return bool(answer)
        case _:
            return int(answer)


class StoreClient(threading.Thread):
    """One client. `run` ends when the shared event is set.

    Args:
        wanders: see the module's text.
        pause_s: mean pause after each operation; those of wanderers are longer.
    """

    def __init__(self, shared: Shared, number: int, *, wanders: bool = False, pause_s: float = PAUSE_S) -> None:
        super().__init__(name=f"{'wanderer' if wanders else 'store client'} {number}", daemon=True)
        self._shared = shared
        self._wanders = wanders
        self._pause_s = WANDERERS_PAUSE_S if wanders else pause_s
        self._chance = random.Random(self.name)
        self._connection: RespConnection | None = None
        self._turn = number
        self._values: dict[str, int] = {}
        """The value last seen of each key, for compare-and-set."""
        self.failure: BaseException | None = None

    def run(self) -> None:
        works = {self._single: 55, self._read_many: 8, self._write_many: 5, self._batch: 14, self._watched: 9, self._pipeline: 9}
        try:
            while not self._shared.over.is_set():
                if self._wanders:
                    self._wander()
                else:
                    (work,) = self._chance.choices(list(works), list(works.values()))
                    work()
                self._shared.over.wait(self._pause_s * self._chance.uniform(0.5, 1.5))
        except BaseException as error:  # A defect of this program must not look like an idle client.
            self.failure = error
            raise
        finally:
            self._hang_up()

    # The connection.

    def _connected(self) -> RespConnection | None:
        """The connection, to the next node that answers if there is none; None if the run is over."""
        while self._connection is None and not self._shared.over.is_set():
            addresses = self._shared.addresses()
            if addresses and self._connect(addresses[self._turn % len(addresses)]):
                break
            self._turn += 1
            self._shared.over.wait(POLL_S * self._chance.uniform(0.5, 1.5))
        return self._connection

    def _connect(self, address: Address) -> bool:
        try:
            self._connection = RespConnection(address, self._shared.database, WANDERER_LIMIT_S if self._wanders else OPERATION_LIMIT_S)
        except ConnectionEnded:
            return False
        return True

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _go_on_elsewhere(self) -> None:
        self._hang_up()
        self._turn += 1

    # Records.

    def _note(self, group: str, parts: Sequence[Part], began: float, answers: Sequence[Answer] | None) -> None:
        """Record an operation. Args: answers: None if its outcome is unknown."""
        ended = None if answers is None else time.monotonic()
        result = None if answers is None else tuple(answers)
        operation = operation_of(tuple(parts), began, ended, result, self.name)
        with self._shared.lock:
            self._shared.seen.operations.setdefault(group, []).append(operation)
            if ended is not None and operation.kind != "read":
                self._shared.writes.append((began, ended))
        self._count(Result.UNKNOWN if answers is None else Result.ANSWERED)
        for part, answer in zip([part for part in parts if isinstance(part, Step)], answers or (), strict=False):
            self._learn(f"{group}:{part.cell}", part, answer)

    def _learn(self, key: str, step: Step, answer: Answer) -> None:
        if step.command in ("get", "incr") and answer is not None:
            self._values[key] = int(answer)
        elif step.command in ("set", "getset") or (step.command in ("setnx", "cas") and answer):
            self._values[key] = step.value or 0
        elif step.command in ("del", "getdel"):
            self._values.pop(key, None)

    def _count(self, result: Result) -> None:
        self._shared.stages.count(Kind.KEY_VALUE, result)

    def _judge(self, refusal: Exception) -> bool:
        """Whether an operation that met an error may have happened."""
        code = code_of(refusal)
        if code == UNKNOWN:
            return True
        if code not in NOT_DONE:
            with self._shared.lock:
                self._shared.strange.append(f"store: {code}: {refusal}")
        if not self._wanders and self._connection is not None:
            self._go_on_elsewhere()
        return False

    # Operations.

    def _group(self) -> str:
        return self._shared.key(GROUP, self._chance, GROUPS_AT_A_TIME)

    def _step(self, group: str) -> Step:
        """A step on a key of a group."""
        cell = self._chance.randrange(KEYS)
        commands = {"get": 24, "set": 14, "setnx": 8, "cas": 20, "del": 9, "incr": 10, "getset": 6, "getdel": 5}
        (command,) = self._chance.choices(list(commands), list(commands.values()))
        known = self._values.get(f"{group}:{cell}")
        if command == "cas" and known is not None:
            return Step(command, cell, self._value(), known)
        if command == "cas":
            command = "get"
        return Step(command, cell, self._value() if command in ("set", "setnx", "getset") else None)

    def _value(self) -> int:
        return self._shared.number() * VALUE_STEP

    def _run(self, group: str, parts: Sequence[Part], *commands: Command) -> tuple[float, list[Any]]:
        """Send the commands of one operation. Returns its begin and the answers.

        Raises:
            NotAnswered: the operation was refused, which is counted, or has an unknown outcome, which is noted.
        """
        connection = self._connected()
        if connection is None:
            raise NotAnswered
        began = time.monotonic()
        try:
            answers = connection.ask(*commands)
        except ConnectionEnded:
            self._go_on_elsewhere()
            self._note(group, parts, began, None)
            raise NotAnswered from None
        # EXEC is refused if a command before it is.
        refusal = next(filter(is_refusal, answers), None)
        if refusal is None:
            return began, answers
        if self._judge(refusal):
            self._note(group, parts, began, None)
        else:
            self._count(Result.REFUSED)
        raise NotAnswered

    def _single(self) -> None:
        group = self._group()
        self._do(group, self._step(group))

    def _do(self, group: str, step: Step) -> None:
        with contextlib.suppress(NotAnswered):
            began, (answer,) = self._run(group, [step], command_of(f"{group}:{step.cell}", step))
            self._note(group, [step], began, [answer_of(step, answer)])

    def _read_many(self) -> None:
        group = self._group()
        steps = [Step("get", cell) for cell in range(KEYS)]
        with contextlib.suppress(NotAnswered):
            began, (found,) = self._run(group, steps, ("MGET", *(f"{group}:{cell}" for cell in range(KEYS))))
            self._note(group, steps, began, [answer_of(step, one) for step, one in zip(steps, found, strict=True)])

    def _write_many(self) -> None:
        group = self._group()
        steps = [Step("set", cell, self._value()) for cell in range(KEYS)]
        words = [word for step in steps for word in (f"{group}:{step.cell}", step.value or 0)]
        with contextlib.suppress(NotAnswered):
            began, _ = self._run(group, steps, ("MSET", *words))
            self._note(group, steps, began, [True] * len(steps))

    def _batch(self) -> None:
        group = self._group()
        # TRIPLICATE.CAS has a condition, which MULTI refuses.
        steps = [step for step in (self._step(group) for _ in range(self._chance.randrange(2, 5))) if step.command != "cas"]
        if steps:
            self._execute(group, steps, ())

    def _execute(self, group: str, steps: Sequence[Step], conditions: Sequence[Unchanged]) -> None:
        """Run steps between MULTI and EXEC. Args: conditions: what WATCH has made of them."""
        commands = [command_of(f"{group}:{step.cell}", step) for step in steps]
        try:
            began, answers = self._run(group, [*conditions, *steps], ("MULTI",), *commands, ("EXEC",))
        except NotAnswered:
            return
        answer = answers[-1]
        if answer is None:
            self._count(Result.ANSWERED)  # A watched key was changed, and nothing was done.
            return
        refusals = [str(one) for one in answer if is_refusal(one)]
        if refusals:
            with self._shared.lock:
                self._shared.strange.append(f"store: a step of a batch was refused: {refusals[0]}")
            return
        self._note(group, [*conditions, *steps], began, [answer_of(step, one) for step, one in zip(steps, answer, strict=True)])

    def _watched(self) -> None:
        """WATCH and read a key, then change two keys if it is unchanged."""
        group, cell = self._group(), self._chance.randrange(KEYS)
        read, key = Step("get", cell), f"{group}:{cell}"
        try:
            began, (_, answer) = self._run(group, [read], ("WATCH", key), ("GET", key))
        except NotAnswered:
            self._hang_up()  # It may be watched, or not.
            return
        found = answer_of(read, answer)
        self._note(group, [read], began, [found])
        steps = [Step("set", cell, self._value()), Step("incr", (cell + 1) % KEYS)]
        self._execute(group, steps, [Unchanged(cell, None if found is None else int(found))])

    def _pipeline(self) -> None:
        """Commands that are sent together are single operations: a node may run them together, or some of them."""
        connection = self._connected()
        if connection is None:
            return
        group = self._group()
        steps = [self._step(group) for _ in range(self._chance.randrange(2, 6))]
        began = time.monotonic()
        try:
            answers = connection.ask(*(command_of(f"{group}:{step.cell}", step) for step in steps))
        except ConnectionEnded:
            self._go_on_elsewhere()
            for step in steps:
                self._note(group, [step], began, None)
            return
        for step, answer in zip(steps, answers, strict=True):
            if not is_refusal(answer):
                self._note(group, [step], began, [answer_of(step, answer)])
            elif self._judge(answer):
                self._note(group, [step], began, None)
            else:
                self._count(Result.REFUSED)

    def _wander(self) -> None:
        """One linearizable read. The connection is kept for a while, so that a read waits there when the node goes on."""
        if self._chance.random() < 0.5:
            self._read_many()
        else:
            self._do(self._group(), Step("get", self._chance.randrange(KEYS)))
        if self._chance.random() < WANDERERS_MOVE:
            self._go_on_elsewhere()
