# dash's mode wal from Python: WAL mode as your program has it, with a log that makes commits durable.
#
# $ DASH_LIBRARY=./libdash.so python3 wal.py app.db
# journal mode: wal
# durability: full
# notes: 2
import os
import sqlite3
import sys
from pathlib import Path

library = os.path.abspath(os.environ.get("DASH_LIBRARY", "libdash.so"))
path = Path(sys.argv[1] if len(sys.argv) > 1 else "app.db").absolute()

# A VFS can't be loaded on the connection it serves: load it on a scratch one, once per process.
scratch = sqlite3.connect(":memory:")
scratch.enable_load_extension(True)
scratch.load_extension(library)
scratch.close()


def connect():
    """Opens a connection; one for each thread."""
    db = sqlite3.connect(path.as_uri() + "?vfs=dash", uri=True, timeout=30)
    db.execute("PRAGMA journal_mode=WAL")  # the database keeps it
    db.execute("PRAGMA synchronous=FULL")  # NORMAL: a power loss may take the last commits
    return db


db = connect()
print("journal mode:", db.execute("PRAGMA journal_mode").fetchone()[0])
durability = db.execute("SELECT value FROM dash_stats WHERE name = 'durability'").fetchone()[0]
print("durability:", durability)
with db:  # one transaction, durable when the block is left
    db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)")
for body in ("durable", "when it returns"):
    with db:
        db.execute("INSERT INTO notes (body) VALUES (?)", (body,))
print("notes:", db.execute("SELECT count(*) FROM notes").fetchone()[0])
db.close()
