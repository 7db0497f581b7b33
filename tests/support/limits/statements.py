"""What kind of statement a text is: what the proxy may do with it depends on that alone."""

import enum
import re

_SPACE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*", re.DOTALL)
_WORD = re.compile(r"[a-zA-Z]+")
_TO_SAVEPOINT = re.compile(r"\s+(?:WORK\s+|TRANSACTION\s+)?TO\b", re.IGNORECASE)


class Kind(enum.Enum):
    """By its first word."""

    DATA = enum.auto()
    """Reads or writes rows: may fail, and so may the commit of a transaction that has nothing else."""
    SCHEMA = enum.auto()
    """Changes the schema: may fail, and must not be in a transaction with others."""
    BEGIN = enum.auto()
    COMMIT = enum.auto()
    ROLLBACK = enum.auto()
    REFUSED = enum.auto()
    """YugabyteDB has no such statement, or has it only behind a flag."""
    OTHER = enum.auto()
    """Settings, savepoints and the like: passed through."""


_WORDS = {
    Kind.DATA: "SELECT INSERT UPDATE DELETE WITH VALUES MERGE TABLE COPY DECLARE FETCH CALL",
    Kind.SCHEMA: "CREATE ALTER DROP GRANT REVOKE COMMENT REINDEX",
    Kind.BEGIN: "BEGIN START",
    Kind.COMMIT: "COMMIT END",
    Kind.ROLLBACK: "ROLLBACK ABORT",
    Kind.REFUSED: "LISTEN NOTIFY LOCK TRUNCATE",
}
_KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}


def kind_of(text: str) -> Kind:
    """The kind of the first statement of a text."""
    word = first_word(text)
    kind = _KINDS.get(word, Kind.OTHER)
    if kind is Kind.ROLLBACK and _TO_SAVEPOINT.match(text, text.upper().index(word) + len(word)):
        return Kind.OTHER
    return kind


def first_word(text: str) -> str:
    """In capitals, after comments and brackets."""
    space = _SPACE.match(text)
    word = _WORD.match(text, space.end() if space else 0)
    return word[0].upper() if word else ""


def is_single(text: str) -> bool:
    """Whether this is certainly one statement."""
    return ";" not in text.rstrip().rstrip(";")
