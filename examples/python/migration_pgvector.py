# SPDX-License-Identifier: Apache-2.0
"""A pgvector table of old vectors, asked by a new model. Needs psycopg and a PostgreSQL with pgvector
(pip install "psycopg[binary]" pgserver), which local_postgres.py starts.

A second column takes the rewritten vectors, so that old and new queries both work while rows move.
"""

import numpy as np
from local_postgres import database, text
from two_models import overlap, two_models

import unicon


def ask(connection, column, queries):
    return [[row[0] for row in connection.execute(
        f"SELECT id FROM items ORDER BY {column} <#> %s::vector LIMIT 10", (text(query),))] for query in queries]


old, new, queries_old, queries_new = two_models(1500, 50)
truth, _ = unicon.search(queries_new, new, k=10)
migration = unicon.Migration(into="new").fit(old[:800], new[:800])
with database() as connection:
    connection.execute(f"CREATE TABLE items (id int PRIMARY KEY, old vector({old.shape[1]}))")
    with connection.cursor() as cursor:  # filled long ago
        cursor.executemany("INSERT INTO items VALUES (%s, %s::vector)", [(i, text(r)) for i, r in enumerate(old)])
    print(f"the old model finds {overlap(ask(connection, 'old', queries_old), truth):.3f} of the ten nearest")
    connection.execute(f"ALTER TABLE items ADD COLUMN moved vector({new.shape[1]})")
    while True:  # in pieces; a stop leaves the rest for the next run
        rows = connection.execute("SELECT id, old::text FROM items WHERE moved IS NULL ORDER BY id LIMIT 500").fetchall()
        if not rows:
            break
        vectors = migration.embed(np.array([np.fromstring(v.strip("[]"), sep=",") for _, v in rows], "f4"))
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE items SET moved = %s::vector WHERE id = %s",
                               [(text(v), i) for (i, _), v in zip(rows, vectors)])
    print(f"new queries on the rewritten column: {overlap(ask(connection, 'moved', queries_new), truth):.3f}")
