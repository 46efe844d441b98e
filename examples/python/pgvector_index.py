# SPDX-License-Identifier: Apache-2.0
"""A pgvector table that finds what `unicon search` finds. Needs psycopg and a PostgreSQL with pgvector
(pip install "psycopg[binary]" pgserver), which local_postgres.py starts.

The operator <#> is minus the inner product, so rows of form "index" and queries of form "query" give
balanced scores, with an index (vector_ip_ops) or without.
"""

from pathlib import Path

from local_postgres import database, text

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"
expected, exact = aligner.search(upper, lower, k=5)
rows = aligner.transform_y(lower, "index")       # [v, -b(v)]
queries = aligner.transform_x(upper, "query")    # [u, 1]

with database() as connection:
    connection.execute(f"CREATE TABLE lower (id int PRIMARY KEY, row vector({rows.shape[1]}))")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO lower VALUES (%s, %s::vector)", [(i, text(row)) for i, row in enumerate(rows)])
    connection.execute("CREATE INDEX ON lower USING hnsw (row vector_ip_ops) WITH (m = 32, ef_construction = 256)")
    connection.execute("SET hnsw.ef_search = 400")
    same = 0
    for i, query in enumerate(queries[:100]):
        found = connection.execute("SELECT id, -(row <#> %s::vector) FROM lower ORDER BY row <#> %s::vector LIMIT 5",
                                   (text(query), text(query))).fetchall()
        assert all(abs(score - right) < 1e-5 for (_, score), right in zip(found, exact[i])), "same scores"
        same += sum(row == right for (row, _), right in zip(found, expected[i]))
print(f"{same / 500:.2%} of 500 places agree, any others are within 1e-5")
