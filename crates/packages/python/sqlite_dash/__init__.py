"""dash for Python's ``sqlite3``: durable commits, many writers, and a plain SQLite file at the end.

>>> import sqlite_dash
>>> db = sqlite_dash.connect("app.db")

``db`` is a ``sqlite3.Connection`` in WAL mode whose commits survive a power loss.
"""

import os
import sqlite3
from typing import Any, Optional, Union
from urllib.parse import quote

from ._loading import loadable_path, load, program_path
from ._version import VERSION as __version__

__all__ = ["NotDurable", "connect", "durability", "last_error", "load", "loadable_path", "program_path", "uri"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: What durability() may answer where a commit that returned survives a power loss.
_SURVIVES = ("full", "device")


class NotDurable(RuntimeError):
    """A connection is not on dash, or its commits may be lost in a power loss."""


def uri(path: Path, durability: str = "full") -> str:
    """The URI that opens ``path`` through dash, for ``sqlite3.connect(…, uri=True)``.

    ``durability`` is ``full``: each commit survives a power loss; or ``host``: as
    ``PRAGMA synchronous`` says; or another value of ``dash_durability``.
    """
    name = os.fsencode(path)
    # Two slashes at the start would be taken for a host name.
    before = "//" if name.startswith(b"//") else ""
    return f"file:{before}{quote(name)}?vfs=dash&dash_durability={quote(durability)}"


def connect(path: Path, *, durability: str = "full", timeout: float = 30.0, **options: Any) -> sqlite3.Connection:
    """Opens the database ``path`` through dash, in WAL mode. ``":memory:"``, and ``""`` for a temporary
    database, have no file that outlives them: they are SQLite's own, without dash.

    ``options`` are those of ``sqlite3.connect``. Raises ``sqlite3.Error`` with dash's reason where
    it can't be opened, and ``NotDurable`` where it was opened and commits are not what
    ``durability`` asks for (see ``uri``).
    """
    if "uri" in options:
        raise TypeError("connect() takes a path and makes the URI itself: see sqlite_dash.uri()")
    load()
    if path in (":memory:", b":memory:", "", b""):
        return sqlite3.connect(path, timeout=timeout, **options)
    with explained():
        return ready(sqlite3.connect(uri(path, durability), uri=True, timeout=timeout, **options), durability)


def ready(db: Any, asked: str) -> Any:
    """Puts a connection that was just opened into WAL mode. Closes it, and raises, where its commits
    are not what was asked for."""
    try:
        enter_wal(db)
        check(db, asked)
    except BaseException:
        db.close()
        raise
    return db


def enter_wal(db: Any) -> None:
    """Puts the database of a ``sqlite3.Connection`` into WAL mode."""
    # A connection that has begun a transaction by itself can't change the mode.
    waits = getattr(db, "autocommit", None) is False
    if waits:
        db.autocommit = True
    db.execute("PRAGMA journal_mode=WAL").fetchall()
    if waits:
        db.autocommit = False


def check(db: Any, asked: str = "full") -> None:
    """Raises ``NotDurable`` where durability is not what was asked for when ``db`` was opened."""
    if asked in _SURVIVES:
        _survives(db, in_memory=True)
    elif _one(db, "SELECT dash_engine()") in ("none", "plain"):
        raise NotDurable(_why_not(db))


def durability(db: Any) -> str:
    """How a commit of this connection becomes durable: ``full``, or ``device``.

    Raises ``NotDurable``, with the reason, if the connection is not on dash or a commit that
    returned may be lost in a power loss.
    """
    return _survives(db, in_memory=False)


def _survives(db: Any, *, in_memory: bool) -> str:
    """See ``durability``. ``in_memory``: a file system in memory will do, as for tests, where nothing
    that is said makes a commit durable.
    """
    try:
        engine = _one(db, "SELECT dash_engine()")
    except sqlite3.OperationalError:
        raise NotDurable("dash is not loaded: call sqlite_dash.load() before the database is opened") from None
    if engine in ("none", "plain"):
        raise NotDurable(_why_not(db))
    found = _one(db, "SELECT value FROM dash_stats WHERE name = 'durability'")
    # Each commit of mode shadow is flushed before it returns; it has no other durability.
    if found is None and engine == "shadow":
        return "full"
    if found == "volatile" and not in_memory:
        raise NotDurable("the database is on a file system in memory, which no power loss leaves anything of")
    if found not in (*_SURVIVES, "volatile"):
        raise NotDurable(
            f"commits are durable as '{found}': say PRAGMA synchronous=FULL, or dash_durability=full in the URI"
        )
    return str(found)


def last_error() -> Optional[str]:
    """What dash said last in this thread, such as why a database can't be opened or is locked."""
    db = sqlite3.connect(":memory:")
    try:
        return _one(db, "SELECT dash_last_error()")
    except sqlite3.OperationalError:  # not loaded
        return None
    finally:
        db.close()


class explained:
    """A context in which an error of ``sqlite3`` gets dash's reason behind its text, and where that
    advises ``BEGIN IMMEDIATE``, which is SQL, how a framework is told so."""

    def __init__(self, immediate: str = "") -> None:
        self._immediate = immediate

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # dash has nothing to say of a statement that is wrong.
        if isinstance(error, sqlite3.OperationalError) and _is_of_files(error):
            reason = last_error()
            if reason and reason not in str(error):
                how = self._immediate if "BEGIN IMMEDIATE" in reason else ""
                error.args = (f"{error}: {reason}{how}",)


#: What SQLite says of its files and locks.
_OF_FILES = ("locked", "unable to open", "readonly", "disk", "busy", "cannot start", "no such vfs")


def _is_of_files(error: sqlite3.OperationalError) -> bool:
    return any(words in str(error) for words in _OF_FILES)


def _one(db: Any, sql: str) -> Any:
    row = db.execute(sql).fetchone()
    return row and row[0]


def _why_not(db: Any) -> str:
    reason = _one(db, "SELECT dash_last_error()")
    return f"the database is not on dash{': ' + reason if reason else ''}"
