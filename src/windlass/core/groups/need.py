"""How many members of a group must complete: all, a number, or a share such as "95%". Pure."""

import re
from fractions import Fraction

from windlass.core.text import shown
from windlass.errors import InvalidOption

Need = int | str | None
"""None: all."""
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")


def check_need(need: object, size: int | None) -> Need:
    """The need as it is stored; `size` is None if it is not known yet."""
    if need is None or need == "all":
        return None
    if isinstance(need, str) and (found := _SHARE.fullmatch(need)) and Fraction(found[1]) <= 100:
        return need
    if isinstance(need, int) and not isinstance(need, bool) and need >= 0:
        if size is not None and need > size:
            raise InvalidOption("need", f"is {need:,}, and the group has {size:,} members")
        return need
    raise InvalidOption("need", f'must be "all", a number of members or a share such as "95%", not {shown(need)}')


def needed(need: Need, size: int) -> int:
    """How many members of a group of this size must complete; a share is rounded up."""
    if need is None:
        return size
    if isinstance(need, int):
        return need
    share = Fraction(need[:-1]) * size / 100
    return -(-share.numerator // share.denominator)


def allowed_losses(need: Need, size: int | None) -> int | None:
    """How many members may end without completing; None while the size is not known."""
    if need is None:
        return 0
    return None if size is None else size - needed(need, size)
