# dash from a Python whose sqlite3 module was built without enable_load_extension (pyenv, macOS):
# the library is loaded by ctypes into the very SQLite that the module uses.
#
# $ DASH_LIBRARY=./libdash.so python3 app_ctypes.py app.db
# journal mode: wal
# notes: 2
import ctypes
import os
import sqlite3
import sys
from pathlib import Path

import _sqlite3


def load(library):
    """Loads dash for the whole process; later connections can name it."""
    # The module's own library leads to the SQLite it is linked with, and to no other copy.
    lib = ctypes.CDLL(_sqlite3.__file__)
    lib.sqlite3_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    lib.sqlite3_enable_load_extension.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.sqlite3_load_extension.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_char_p),
    ]
    lib.sqlite3_close.argtypes = [ctypes.c_void_p]
    scratch = ctypes.c_void_p()
    error = ctypes.c_char_p()
    if lib.sqlite3_open(b":memory:", ctypes.byref(scratch)) != 0:
        raise RuntimeError("no scratch connection")
    lib.sqlite3_enable_load_extension(scratch, 1)
    loaded = lib.sqlite3_load_extension(
        scratch, os.fsencode(library), None, ctypes.byref(error)
    )
    lib.sqlite3_close(scratch)
    if loaded != 0:
        raise RuntimeError((error.value or b"sqlite3_load_extension failed").decode())


load(os.path.abspath(os.environ.get("DASH_LIBRARY", "libdash.so")))
path = Path(sys.argv[1] if len(sys.argv) > 1 else "app.db").absolute()
db = sqlite3.connect(path.as_uri() + "?vfs=dash", uri=True)
print("journal mode:", db.execute("PRAGMA journal_mode=WAL").fetchone()[0])
with db:
    db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)")
    db.execute("INSERT INTO notes (body) VALUES ('durable'), ('when it returns')")
print("notes:", db.execute("SELECT count(*) FROM notes").fetchone()[0])
db.close()
