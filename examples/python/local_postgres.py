# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL with the extension vector for as long as an example runs: that of the system, or the
one inside the package pgserver (pip install pgserver). Needs psycopg (pip install "psycopg[binary]")."""

import contextlib
import glob
import os
import shutil
import subprocess
import sys
import tempfile


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


def text(row):
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.9g}" for value in row) + "]"


@contextlib.contextmanager
def database():
    """A connection to a new database with the extension."""
    try:
        import psycopg
    except ImportError:
        skip('psycopg is not installed (pip install "psycopg[binary]")')
    bin_folder, folder, user = programs(), tempfile.mkdtemp(), {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody"}

    def run(program, *words):
        done = subprocess.run([f"{bin_folder}/{program}", *words], capture_output=True, text=True, cwd=folder, **user)
        if done.returncode:
            sys.exit(f"{program}: {done.stderr}")

    try:
        run("initdb", "-D", f"{folder}/data", "-U", "unicon", "-A", "trust")
        run("pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", "-o",
            f"-k {folder} -c listen_addresses=''", "start")
        with psycopg.connect(host=folder, user="unicon", dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            yield connection
    finally:
        if os.path.exists(f"{folder}/data/postmaster.pid"):
            run("pg_ctl", "-D", f"{folder}/data", "-m", "fast", "stop")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with database() as connection:
        print(connection.execute("SELECT extname, extversion FROM pg_extension WHERE extname = 'vector'").fetchone())
