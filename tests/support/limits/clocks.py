"""A role whose sessions see the server's clock with a constant error, as those on another node of a cluster do."""

from urllib.parse import urlsplit

import psycopg

_SHIFTED = ("clock_timestamp", "now", "statement_timestamp", "transaction_timestamp")


def with_clock(url: str, name: str, milliseconds: int) -> str:
    """The address for a role of this name, with the rights of the one that the address names, who is a superuser.

    Functions on its search path come before those of the system.
    """
    parts = urlsplit(url)
    functions = [
        f"CREATE FUNCTION {name}.{each}() RETURNS timestamptz LANGUAGE sql STABLE"
        f" AS $$ SELECT pg_catalog.{each}() + interval '{milliseconds} ms' $$"
        for each in _SHIFTED
    ]
    with psycopg.connect(url, autocommit=True) as superuser:
        for statement in (
            f"DROP ROLE IF EXISTS {name}",
            f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{name}'",
            f"CREATE SCHEMA {name}",
            *functions,
            f"ALTER ROLE {name} IN DATABASE {parts.path[1:]} SET search_path = {name}, pg_catalog, public",
        ):
            superuser.execute(statement.encode())
    return parts._replace(netloc=f"{name}:{name}@{parts.netloc.rpartition('@')[2]}").geturl()
