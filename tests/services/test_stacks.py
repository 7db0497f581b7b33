"""Where a runner is stuck, read from the stacks that it wrote."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import windlass
from windlass.worker.stacks import Stacks, user_frames

HERE = "/srv/shop/tasks.py"
OURS = os.path.join(os.path.dirname(windlass.__file__), "worker", "run.py")
STANDARD = os.path.join(os.path.dirname(os.__file__), "threading.py")
INSTALLED = os.path.join(os.path.dirname(os.__file__), "site-packages", "requests", "api.py")


def thread(*frames: tuple[str, int, str], current: bool = False) -> str:
    head = "Current thread" if current else "Thread"
    lines = [f'  File "{file}", line {line} in {name}' for file, line, name in frames]
    return "\n".join([f"{head} 0x00007f0000000000 (most recent call first):", *lines, ""])


@pytest.mark.parametrize(
    ("report", "found"),
    [
        (thread((HERE, 7, "resize"), (OURS, 30, "run_async"), current=True), f"{HERE}:7 in resize"),
        (thread((STANDARD, 5, "wait"), (HERE, 9, "mail"), (OURS, 3, "run_sync")), f"{HERE}:9 in mail"),
        (thread((INSTALLED, 5, "get"), (HERE, 9, "mail")), f"{INSTALLED}:5 in get"),
        (
            thread((HERE, 7, "a"), (HERE, 8, "b")) + "\n" + thread((HERE, 9, "c"), current=True),
            f"{HERE}:7 in a; {HERE}:9 in c",
        ),
        (thread((HERE, 7, "a")) + thread((HERE, 7, "a")), f"{HERE}:7 in a"),
        (
            thread((STANDARD, 5, "wait"), (OURS, 3, "x"), ("<frozen runpy>", 1, "y")),
            "somewhere outside of Python code",
        ),
        ("", "somewhere outside of Python code"),
        ("\x00rubbish\n", "somewhere outside of Python code"),
    ],
)
def test_the_innermost_line_of_user_code_is_named(report: str, found: str) -> None:
    assert user_frames(report) == found


async def test_a_process_that_holds_its_interpreter_is_asked_and_answers(tmp_path: Path) -> None:
    program = tmp_path / "holder.py"
    program.write_text(
        "import faulthandler, signal, sys, time\n"
        "faulthandler.register(signal.SIGUSR2, file=int(sys.argv[1]), all_threads=True)\n"
        "print('ready', flush=True)\n"
        "def held():\n"
        "    time.sleep(600)\n"
        "held()\n"
    )
    stacks = Stacks.create()
    arguments = [sys.executable, str(program), str(stacks.descriptor)]
    process = subprocess.Popen(arguments, pass_fds=[stacks.descriptor], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"ready\n"
        for _ in range(100):
            where = await stacks.ask(process.pid)
            if "held" in where:
                break
        assert where == f"{program}:5 in held"
        assert await stacks.ask(process.pid) == where, "the second answer begins anew"
    finally:
        process.kill()
        process.communicate()
    assert await stacks.ask(process.pid) == "somewhere outside of Python code"
    stacks.close()
