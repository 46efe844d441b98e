# SPDX-License-Identifier: Apache-2.0
"""A pgvector table of old vectors, asked by a new model. Needs psycopg (pip install "psycopg[binary]")
and a PostgreSQL with the extension vector, which is started here for as long as the example runs:
that of the system, or the one inside the package pgserver (pip install pgserver).

A second column takes the rewritten vectors, so that old and new queries both work while rows move.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from two_models import overlap, two_models

import unicon


def skip(why):
    print(f"skipped: {why}")
    sys.exit()


def programs():
    """The folder of initdb and pg_ctl of a PostgreSQL that has pgvector."""
    found = [(path, path.replace("/lib/", "/share/")[:-4]) for path in glob.glob("/usr/lib/postgresql/*/bin")]
    try:
        import pgserver
        inside = os.path.join(os.path.dirname(pgserver.__file__), "pginstall")
        found.append((f"{inside}/bin", f"{inside}/share/postgresql"))
    except ImportError:
        pass
    for path, share in found:
        if os.path.exists(f"{share}/extension/vector.control"):
            return path
    skip("no PostgreSQL with pgvector is here (pip install pgserver)")


try:
    import psycopg
except ImportError:
    skip('psycopg is not installed (pip install "psycopg[binary]")')

bin_folder = programs()
folder = tempfile.mkdtemp()
user = {}
if os.geteuid() == 0:  # PostgreSQL does not run as root
    shutil.chown(folder, "nobody")
    user = {"user": "nobody"}


def run(program, *words):
    done = subprocess.run([f"{bin_folder}/{program}", *words], capture_output=True, text=True, cwd=folder, **user)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr}")


def text(row):
    return "[" + ",".join(f"{value:.7g}" for value in row) + "]"


def ask(database, column, queries):
    return [[row[0] for row in database.execute(
        f"SELECT id FROM items ORDER BY {column} <#> %s::vector LIMIT 10", (text(query),))] for query in queries]


old, new, queries_old, queries_new = two_models(1500, 50)
truth, _ = unicon.search(queries_new, new, k=10)
migration = unicon.Migration(into="new").fit(old[:800], new[:800])
try:
    run("initdb", "-D", f"{folder}/data", "-U", "unicon", "-A", "trust")
    run("pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", "-o", f"-k {folder} -c listen_addresses=''",
        "start")
    with psycopg.connect(host=folder, user="unicon", dbname="postgres", autocommit=True) as database:
        database.execute("CREATE EXTENSION vector")
        database.execute(f"CREATE TABLE items (id int PRIMARY KEY, old vector({old.shape[1]}))")
        with database.cursor() as cursor:  # filled long ago
            cursor.executemany("INSERT INTO items VALUES (%s, %s::vector)", [(i, text(r)) for i, r in enumerate(old)])
        print(f"the old model finds {overlap(ask(database, 'old', queries_old), truth):.3f} of the ten nearest")
        database.execute(f"ALTER TABLE items ADD COLUMN moved vector({new.shape[1]})")
        while True:  # in pieces; a stop leaves the rest for the next run
            rows = database.execute("SELECT id, old::text FROM items WHERE moved IS NULL ORDER BY id LIMIT 500").fetchall()
            if not rows:
                break
            vectors = migration.embed(np.array([np.fromstring(v.strip("[]"), sep=",") for _, v in rows], "f4"))
            with database.cursor() as cursor:
                cursor.executemany("UPDATE items SET moved = %s::vector WHERE id = %s",
                                   [(text(v), i) for (i, _), v in zip(rows, vectors)])
        print(f"new queries on the rewritten column: {overlap(ask(database, 'moved', queries_new), truth):.3f}")
finally:
    if os.path.exists(f"{folder}/data/postmaster.pid"):
        run("pg_ctl", "-D", f"{folder}/data", "-m", "fast", "stop")
    shutil.rmtree(folder, ignore_errors=True)
