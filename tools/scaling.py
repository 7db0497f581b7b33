"""A fleet that follows a load by `GET /scale`, simulated: writes docs/pictures/scaling.svg and prints its figures.

Every 15 seconds the scaler sets workers = ceil(value / slots), as KEDA and the autoscaler of Kubernetes do: up at
once, down only to the most that was wanted in the last five minutes. A new worker needs 20 seconds to start.
"""

import math
from collections import deque
from pathlib import Path

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "scaling.svg"
MINUTES, SLOTS, RUN_SECONDS = 90, 10, 2.0
POLL, START, STABLE = 15, 20, 300
MIN_WORKERS, MAX_WORKERS = 1, 20
WIDTH, HEIGHT, LEFT = 900, 150, 60


def load(second: int) -> float:
    """Jobs per second: a quiet start, a rise within a minute, a plateau, a burst, and quiet again."""
    minute = second / 60
    if minute < 10 or minute >= 65:
        return 3.0
    burst = 250.0 if 45 <= minute < 46 else 0.0
    return 3.0 + 47.0 * min(1.0, minute - 10) + burst


def simulate() -> list[tuple[float, float, int, float]]:
    """By second: load, pending jobs, ready workers, and how long the oldest pending job has waited."""
    pending: deque[tuple[int, float]] = deque()
    starting: list[int] = []
    ready, wanted, steps = MIN_WORKERS, deque([(0, MIN_WORKERS)]), []
    for second in range(MINUTES * 60):
        pending.append((second, load(second)))
        ready += sum(1 for at in starting if at <= second)
        starting = [at for at in starting if at > second]
        done, running = ready * SLOTS / RUN_SECONDS, 0.0
        while pending and running < done:
            at, jobs = pending.popleft()
            part = min(jobs, done - running)
            running += part
            if part < jobs:
                pending.appendleft((at, jobs - part))
        waiting = sum(jobs for _, jobs in pending)
        if second % POLL == 0:
            value = waiting + running * RUN_SECONDS
            now = min(MAX_WORKERS, max(MIN_WORKERS, math.ceil(value / SLOTS)))
            wanted.append((second, now))
            while wanted[0][0] < second - STABLE:
                wanted.popleft()
            starting += [second + START] * max(0, now - ready - len(starting))
            most = max(each for _, each in wanted)
            ready = min(ready, most) if not starting else ready
        steps.append((load(second), waiting, ready, second - pending[0][0] if waiting > 1e-6 else 0.0))
    return steps


def panel(title: str, values: list[float], top: int, colour: str) -> str:
    """One curve with its axis."""
    most = max(values) or 1.0
    points = " ".join(
        f"{LEFT + index * (WIDTH - LEFT - 10) / len(values):.1f},"
        f"{top + HEIGHT - 30 - value / most * (HEIGHT - 55):.1f}"
        for index, value in enumerate(values)
        if index % 15 == 0
    )
    base = top + HEIGHT - 30
    marks = "".join(
        f'<text x="{LEFT + minute / MINUTES * (WIDTH - LEFT - 10):.0f}" y="{base + 16}">{minute} min</text>'
        for minute in range(0, MINUTES, 15)
    )
    return (
        f'<text x="{LEFT}" y="{top + 14}" font-weight="bold">{title}</text>'
        f'<text x="4" y="{top + 28}">{most:,.0f}</text><text x="4" y="{base}">0</text>'
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 10}" y2="{base}" stroke="#999"/>{marks}'
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>'
    )


def main() -> None:
    """Write the picture, and print what the guide says."""
    steps = simulate()
    load_, pending, workers, oldest = (list(map(float, each)) for each in zip(*steps, strict=True))
    panels = [
        panel("jobs enqueued per second", load_, 0, "#777"),
        panel("workers", workers, HEIGHT, "#2563eb"),
        panel("oldest pending job, seconds", oldest, 2 * HEIGHT, "#dc2626"),
    ]
    PICTURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {3 * HEIGHT}" font-family="sans-serif" '
        f'font-size="11" fill="#444"><rect width="100%" height="100%" fill="#fff"/>{"".join(panels)}</svg>\n'
    )
    plateau = [value for value, each in zip(workers, load_, strict=True) if each == 50.0]
    print(f"workers on the plateau: {sorted(plateau)[len(plateau) // 2]:.0f}, at most {max(workers):.0f}")
    print(
        f"oldest pending job: at most {max(oldest):.0f} s; "
        f"at the end {workers[-1]:.0f} workers, {pending[-1]:.0f} pending"
    )


if __name__ == "__main__":
    main()
