"""python skewed.py FILE arguments…: `windlass arguments…`, with its wall clock off by the seconds that FILE says.

It and its children read the file again and again, so a test can set their clock while they run.
"""

import os
import sys
from pathlib import Path


def main() -> None:
    os.environ["WINDLASS_TEST_OFFSET"] = os.path.abspath(sys.argv[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).with_name("skew")), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    os.execv(sys.executable, [sys.executable, "-m", "windlass", *sys.argv[2:]])


if __name__ == "__main__":
    main()
