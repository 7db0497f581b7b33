"""The name of a process."""

import os

from windlass.client.runtime.process_id import this_process


def _name_in_a_fork() -> str:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, this_process().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as names:
        return names.read()


def test_forks_have_names_of_their_own() -> None:
    names = {this_process(), _name_in_a_fork(), _name_in_a_fork()}
    assert len(names) == 3, names
