"""Every commit × {killed, failed, reply lost}: all of it happened or nothing, and saying it again is safe."""

import asyncio
import inspect
import multiprocessing
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.parts import in_part
from tests.support.processes import PATIENCE
from tests.torture import scenes
from tests.torture.grounds import GROUNDS, Ground
from tests.torture.scene import Scene
from tests.torture.scenes import ARM, SCENES
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.open import open_store
from windlass.store.sql import queues, schedules, stats
from windlass.store.sqlite import roles as sqlite_roles
from windlass.store.sqlite import store as sqlite_store

# Forked from a process that has everything imported and no threads: forty starts cost as much as one. What is called
# there is not of this module, or each of them would import pytest.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["__main__", scenes.__name__, *(f"windlass.store.{each}.store" for each in sorted(GROUNDS))]
)
# What becomes of an error is the same code on every store; what a kill leaves is not.
on_one_store = pytest.mark.parametrize("ground", in_part(sorted(GROUNDS), ["sqlite"]), indirect=True, scope="module")


class Twin:
    """A scene played without a fault: the rows before and after, and the answer."""

    def __init__(self, scene: Scene, ground: Ground, folder: Path) -> None:
        self.scene, self.name = scene, scene.name or scene.verb
        self.ground = ground
        self._start, self._clean = folder / "start.db", folder / "clean.db"

    async def play(self) -> "Twin":
        ground = self.ground
        if self.scene.verb == "migrate":
            ground.bare(self._start)
        else:
            await self.scene.prepare(ground.url(self._start))
        ground.copy(self._start, self._clean)
        self.answer = await self.scene.play(ground.url(self._clean))
        self.before, self.after = ground.rows(self._start), ground.rows(self._clean)
        assert self.before != self.after, "the scene does nothing"
        return self

    def stage(self, path: Path) -> Path:
        """The same beginning, for a fault to fall on."""
        self.ground.copy(self._start, path)
        return path

    async def check(self, path: Path, *, done: bool) -> None:
        """All or nothing; then the call is repeated, as a caller may who does not know."""
        found = self.ground.rows(path)
        whole = found in (self.before, self.after)
        piecemeal = self.ground.is_piecemeal(self.scene)
        assert whole or piecemeal
        assert piecemeal or (found != self.before) is done
        if done and self.scene.adds_up:
            return
        again = await self.scene.play(self.ground.url(path))
        assert self.ground.rows(path) == self.after
        if whole:
            assert self.scene.again(self.answer, again) if done else again == self.answer


@pytest.fixture(scope="module", params=sorted(GROUNDS))
def ground(request: pytest.FixtureRequest) -> Ground:
    return GROUNDS[request.param]


@pytest.fixture(scope="module", params=sorted(SCENES))
def twin(request: pytest.FixtureRequest, ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Twin:
    """Played once for all tests of its scene."""
    return asyncio.run(Twin(SCENES[request.param], ground, tmp_path_factory.mktemp("twin")).play())


async def test_a_process_killed_before_or_after_a_commit_has_done_nothing_or_all_of_it(
    twin: Twin, tmp_path: Path
) -> None:
    for side in ("before_commit", "after_commit"):
        path = twin.stage(tmp_path / f"{side}.db")
        url = twin.ground.url(path)
        points = f"{twin.scene.verb}.{side}=kill"
        process = _processes.Process(target=scenes.play_alone, args=(points, twin.name, url))
        process.start()
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL
        process.close()
        await twin.check(path, done=side == "after_commit")


@on_one_store
async def test_a_lost_reply_leaves_all_or_nothing_and_says_that_it_does_not_know(
    twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fault in ("before_commit=cut", "after_commit=cut", "after_commit=raise"):
        path = twin.stage(tmp_path / f"{fault}.db")
        error = await _failed(twin, path, fault, monkeypatch)
        # What makes the schema is no call of a verb: the call that came with it was not begun.
        assert error.maybe_done is (twin.scene.verb != "migrate")
        await twin.check(path, done=fault.startswith("after_commit"))


@on_one_store
async def test_a_failed_write_leaves_nothing_and_is_certain_of_it(
    twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if twin.scene.verb == "migrate":
        return  # not in a request of its own: the kill and the cut above are all that can happen to it
    path = twin.stage(tmp_path / "raise.db")
    error = await _failed(twin, path, "before_commit=raise", monkeypatch)
    assert error.maybe_done is False
    await twin.check(path, done=False)


async def _failed(twin: Twin, path: Path, fault: str, patch: pytest.MonkeyPatch) -> StoreUnavailable:
    patch.setenv(ARM, f"{twin.scene.verb}.{fault}")
    with pytest.raises(StoreUnavailable, match="failpoint") as caught:
        await twin.scene.play(twin.ground.url(path))
    patch.delenv(ARM)
    return caught.value


async def test_the_same_open_store_goes_on_after_each_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ground: Ground
) -> None:
    scene = SCENES["enqueue"]
    url = ground.url(tmp_path / "jobs.db")
    monkeypatch.setenv(ARM, "enqueue.before_commit=raise,enqueue.after_commit=cut")
    store = scene.opened(url)
    answers: list[Any] = []
    for maybe_done in (False, True):
        with pytest.raises(StoreUnavailable) as caught:
            await scene.act(store)
        assert caught.value.maybe_done is maybe_done
    answers += await scene.act(store)
    await store.close()
    assert [answer.existing for answer in answers] == [True, True]


def test_every_verb_that_writes_has_a_scene() -> None:
    text = "".join(map(inspect.getsource, (sqlite_roles, sqlite_store, queues, schedules, stats)))
    bodies = re.split(r"\n    async def ", text)[1:]
    writing = {body.split("(")[0] for body in bodies if re.search(r"\.write(_combined)?\(", body)}
    writing |= set(re.findall(r"\n    (\w+) = (?:write_verb|writing|announcing)\(", text))
    writing = writing - {"declare_missing", "write_samples"} | {"declare", "sample"}  # which calls them
    assert writing == {scene.verb for scene in SCENES.values()}


def test_a_misspelt_failpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ground: Ground) -> None:
    for wrong in ("settle", "settle.during_commit=kill", "settle.after_commit=explode"):
        monkeypatch.setenv(ARM, wrong)
        with pytest.raises(ConfigError, match="WINDLASS_FAILPOINTS"):
            open_store(ground.url(tmp_path / "jobs.db"))
