"""Tasks that wait for capacity: served in order, at the cost of those for which there is capacity."""

from __future__ import annotations

import asyncio
import random

import pytest

from identity.quotas import Account, Quota
from server.runtime.waiters import Waiters

ALL_MAX, CALLER_MAX, RESERVE = 10, 4, 1


class Pool:
    """Capacity, of which each caller may have a part, and the tasks that wait for it."""

    def __init__(self):
        self.used = {}
        self.served = []
        self.asked = 0
        self.waiters = Waiters(self.has_room, self.is_within)

    def has_room(self, account, size):
        self.asked += 1
        of_caller = self.used.get(account, 0) + size
        is_free = sum(self.used.values()) + size <= ALL_MAX
        return of_caller <= RESERVE or (of_caller <= CALLER_MAX and is_free)

    def is_within(self, account, size):
        return self.used.get(account, 0) + size <= CALLER_MAX

    def take(self, account, size):
        self.used[account] = self.used.get(account, 0) + size

    async def get(self, account, size, number=0):
        if account not in self.waiters and self.has_room(account, size):
            self.take(account, size)
        else:
            await self._wait(account, size)
        self.served.append((account.name, number))

    async def _wait(self, account, size):
        granted = []

        def grant():
            granted.append(size)
            self.take(account, size)

        try:
            await self.waiters.wait(account, size, grant)
        except asyncio.CancelledError:
            if granted:
                self.free(account, size)
            raise

    def free(self, account, size):
        self.used[account] -= size
        self.waiters.wake((account,))


@pytest.fixture
def pool():
    return Pool()


def caller(name):
    return Account(Quota(), name=name)


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


async def started(*coroutines):
    tasks = [asyncio.create_task(one) for one in coroutines]
    await turn()
    return tasks


async def test_tasks_of_a_caller_are_served_in_order_and_no_more_than_there_is_capacity(pool):
    one = caller("one")
    await started(*(pool.get(one, 2, number) for number in range(5)))
    assert pool.served == [("one", 0), ("one", 1)]
    pool.free(one, 2)
    await turn()
    assert pool.served == [("one", 0), ("one", 1), ("one", 2)]
    pool.free(one, 4)
    await turn()
    assert [number for _, number in pool.served] == [0, 1, 2, 3, 4]
    assert not pool.waiters


async def test_a_task_does_not_pass_an_earlier_one_of_its_caller(pool):
    one = caller("one")
    await started(pool.get(one, 2, 0), pool.get(one, 4, 1), pool.get(one, 1, 2))
    assert pool.served == [("one", 0)]
    pool.free(one, 2)
    await turn()
    assert pool.served == [("one", 0), ("one", 1)]


async def test_callers_take_turns_for_the_capacity_of_all(pool):
    big, small = [caller(f"big{i}") for i in range(3)], [caller(f"small{i}") for i in range(3)]
    await started(*(pool.get(one, size) for one, size in zip(big, (4, 4, 2), strict=True)))
    await started(*(pool.get(one, 2, number) for one in small for number in range(2)))
    pool.served.clear()
    for one, size in zip(big, (4, 4, 2), strict=True):
        pool.free(one, size)
    await turn()
    first = ["small0", "small1", "small2", "small0", "small1"]
    assert [name for name, _ in pool.served] == first


async def test_a_reserve_is_not_used_up_by_others(pool):
    callers = [caller(str(i)) for i in range(3)]
    await started(*(pool.get(one, size) for one, size in zip(callers, (4, 4, 2), strict=True)))
    late = caller("late")
    await started(pool.get(late, 1, 0), pool.get(late, 1, 1))
    assert ("late", 0) in pool.served
    pool.free(late, 1)
    await turn()
    assert ("late", 1) in pool.served


async def test_a_task_that_is_cancelled_makes_way(pool):
    one = caller("one")
    tasks = await started(pool.get(one, 3, 0), pool.get(one, 4, 1), pool.get(one, 1, 2))
    tasks[1].cancel()
    await turn()
    assert pool.served == [("one", 0), ("one", 2)]
    assert not pool.waiters
    assert pool.used[one] == 4


async def test_a_cancelled_task_gets_nothing_even_if_capacity_becomes_free_at_once(pool):
    one = caller("one")
    tasks = await started(pool.get(one, 4, 0), pool.get(one, 4, 1))
    tasks[1].cancel()
    pool.free(one, 4)
    await turn()
    assert pool.used[one] == 0
    assert not pool.waiters


@pytest.mark.parametrize("count", [10, 1_000])
async def test_who_cannot_be_served_costs_nothing(pool, count):
    full = [caller(f"full{i}") for i in range(3)]
    await started(*(pool.get(one, size) for one, size in zip(full, (4, 4, 2), strict=True)))
    waiting = [caller(str(i)) for i in range(count)]
    tasks = await started(*(pool.get(one, 2) for one in waiting for _ in range(3)))
    pool.asked = 0
    pool.free(full[2], 2)
    assert pool.asked <= 4
    await turn()
    assert len(pool.served) == 4
    for task in tasks:
        task.cancel()


async def test_random_tasks_are_all_served_and_never_too_many(pool):
    rng = random.Random(7)
    callers = [caller(str(i)) for i in range(6)]
    tasks, held, number = {}, [], 0
    for _ in range(3_000):
        action = rng.random()
        if action < 0.5:
            one, size, number = rng.choice(callers), rng.randint(1, CALLER_MAX), number + 1
            tasks[asyncio.create_task(pool.get(one, size, number))] = one, size
        elif action < 0.6 and tasks:
            rng.choice(list(tasks)).cancel()
        elif held:
            pool.free(*held.pop(rng.randrange(len(held))))
        if rng.random() < 0.7:
            await turn()
        done = [task for task in tasks if task.done()]
        held += [tasks[task] for task in done if not task.cancelled()]
        for task in done:
            del tasks[task]
        assert sum(pool.used.values()) <= ALL_MAX + len(callers) * RESERVE
        assert max(pool.used.values(), default=0) <= CALLER_MAX
    while tasks or held:
        await turn()
        held += [tasks.pop(task) for task in list(tasks) if task.done() and not task.cancelled()]
        tasks = {task: found for task, found in tasks.items() if not task.done()}
        assert held or not tasks, "there is capacity, and somebody waits"
        while held:
            pool.free(*held.pop())
    assert not pool.waiters
    assert not any(pool.used.values())
    for one in callers:
        of_one = [served for name, served in pool.served if name == one.name]
        assert of_one == sorted(of_one)
