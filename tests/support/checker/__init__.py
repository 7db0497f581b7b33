"""The checker: judges histories of many processes and a dump of the store, and believes neither alone."""

from tests.support.checker.audit import Report, audit
from tests.support.checker.lines import Line, read

__all__ = ["Line", "Report", "audit", "read"]
