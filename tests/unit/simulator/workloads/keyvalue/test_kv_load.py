"""Loads of key-value stores are plain data, and shrinking them ends."""

from __future__ import annotations

import random

from triplicate_simulator import plan_from_json, plan_of
from triplicate_simulator.workloads.keyvalue.kv_load import StoreLoad, draw_load, smaller_loads


def test_a_plan_of_stores_survives_json() -> None:
    for seed in range(8, 400, 10):
        plan = plan_of(seed)
        assert plan.workload == "stores"
        assert plan_from_json(plan.to_json()) == plan


def test_shrinking_a_load_ends() -> None:
    load: StoreLoad | None = draw_load(random.Random(1))
    steps = 0
    while load is not None:
        load = next(smaller_loads(load), None)
        steps += 1
        assert steps < 100
