"""The limits of YugabyteDB, enforced on PostgreSQL: a role with few rights, and a proxy that refuses and fails."""
