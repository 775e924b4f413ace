# SPDX-License-Identifier: MIT
"""sql.py FILE: carries out the statements of a SQL sample in a fresh database of PostgreSQL that holds a queue."""
import os
import sys

import psycopg

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import Queue, own_database

address = own_database()
Queue().migrate()
with psycopg.connect(address) as connection, open(sys.argv[1], encoding="utf-8") as file:
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'app'").fetchone():
        connection.execute("CREATE ROLE app")
    for statement in filter(str.strip, file.read().split(";\n")):
        cursor = connection.execute(statement)
        if cursor.description:
            print(*cursor.fetchall(), sep="\n")
