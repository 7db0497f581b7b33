"""Which errors of the server say that it has closed the connection."""

import asyncpg
import pytest

from windlass.store.postgres.connection.trouble import is_lost


def error(state: str) -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": state, "M": "as the server says it"})


@pytest.mark.parametrize("state", ["08006", "57P01", "57P02", "57P05", "25P03", "25P04"])
def test_a_connection_that_the_server_closes_is_lost(state: str) -> None:
    """Among them what idle_in_transaction_session_timeout and, since PostgreSQL 17, transaction_timeout say."""
    assert is_lost(error(state))


@pytest.mark.parametrize("state", ["57014", "25P02", "25006", "40001", "23505"])
def test_a_statement_that_is_refused_leaves_the_connection(state: str) -> None:
    assert not is_lost(error(state))
