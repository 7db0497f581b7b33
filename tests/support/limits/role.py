"""The role of clients under limits: it owns its tables, and may not do with them what YugabyteDB cannot do."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.servers.address import Address, execute

ROLE = "limited"
_RIGHTS = Path(__file__).with_name("role.sql").read_text()
_MAKE = f"""
DO $$ BEGIN
    CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}';
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""


def limit_database(url: str) -> str:
    """Enforce the limits in a database without tables, as a superuser: the address for the role."""
    with psycopg.connect(url, autocommit=True) as superuser:
        if not execute(superuser, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user AND rolsuper"):
            pytest.skip("limits are set by a superuser")
        superuser.execute(_MAKE.encode())
        superuser.execute(_RIGHTS.encode())
    return for_role(url)


def for_role(url: str) -> str:
    """The address for the role, which may create schemas there: that right is not copied with a database."""
    parts = urlsplit(url)
    Address(url).execute(f"GRANT CREATE ON DATABASE {parts.path[1:]} TO {ROLE}")
    return parts._replace(netloc=f"{ROLE}:{ROLE}@{parts.netloc.rpartition('@')[2]}").geturl()
