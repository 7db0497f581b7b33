"""python hold_file.py DATABASE SECONDS: a stranger's long write transaction on a SQLite file."""

import sqlite3
import sys
import time

connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
