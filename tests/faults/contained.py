"""python contained.py BOOT SECONDS arguments…: Python with these arguments, in a container of its own.

It has its own boot id (as systemd-nspawn gives), and its boot clock is ahead by so many seconds (a time namespace).
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BOOT_ID = "/proc/sys/kernel/random/boot_id"
NEW_TIME, NEW_MOUNTS = 0x80, 0x20000


def main() -> None:
    boot, seconds = sys.argv[1:3]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS | NEW_TIME):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/timens_offsets").write_text(f"boottime {seconds} 0\n")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{boot}\n")
        file.flush()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "--bind", file.name, BOOT_ID], check=True)
    os.execv(sys.executable, [sys.executable, *sys.argv[3:]])


if __name__ == "__main__":
    main()
