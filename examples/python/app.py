# dash from Python's own sqlite3 module.
#
# $ DASH_LIBRARY=./libdash.so python3 app.py app.db
# journal mode: wal
# notes: 3
# commits so far: 4
#
# Where this says that sqlite3 can't load extensions, use app_ctypes.py.
import os
import sqlite3
import sys
from pathlib import Path

library = os.path.abspath(os.environ.get("DASH_LIBRARY", "libdash.so"))
path = Path(sys.argv[1] if len(sys.argv) > 1 else "app.db").absolute()

# A VFS can't be loaded on the connection it serves: load it on a scratch one, once per process.
scratch = sqlite3.connect(":memory:")
if not hasattr(scratch, "enable_load_extension"):
    sys.exit("this Python's sqlite3 can't load extensions: use app_ctypes.py")
scratch.enable_load_extension(True)
scratch.load_extension(library)
scratch.close()

# as_uri() escapes what must be escaped.
db = sqlite3.connect(path.as_uri() + "?vfs=dash", uri=True)
print("journal mode:", db.execute("PRAGMA journal_mode=WAL").fetchone()[0])
with db:  # one transaction, durable when the block is left
    db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)")
for body in ("durable", "when it returns"):
    with db:
        db.execute("INSERT INTO notes (body) VALUES (?)", (body,))
with db:
    db.execute("INSERT INTO notes (body) VALUES ('one flush each')")
print("notes:", db.execute("SELECT count(*) FROM notes").fetchone()[0])
commits = db.execute("SELECT value FROM dash_stats WHERE name = 'commits'").fetchone()[0]
print("commits so far:", commits)
db.close()
