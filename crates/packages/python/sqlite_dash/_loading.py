"""Loading libdash.so into the SQLite that Python's ``sqlite3`` uses."""

import ctypes
import os
import platform
import sqlite3
import sys
import threading
from typing import Any, Set

from ._version import VERSION

_HOME = os.path.dirname(os.path.abspath(__file__))
_BUILT_FOR = ("Linux on x86_64", "Linux on aarch64")
_MUTEX = threading.RLock()
_loaded: Set[bool] = set()


def loadable_path() -> str:
    """The path of libdash.so, for hosts that load it themselves. ``DASH_LIBRARY`` names another one by
    its whole path, but not in a program with more rights than its user.

    Raises ``RuntimeError`` where this package has none for this system.
    """
    other = os.environ.get("DASH_LIBRARY")
    if (os.getuid(), os.getgid()) != (os.geteuid(), os.getegid()):
        other = None
    if other and not os.path.isabs(other):
        raise RuntimeError(f"DASH_LIBRARY must be a whole path, and is {other}")
    return _file("libdash.so", other)


def program_path() -> str:
    """The path of the program ``sqlite-dash``. Raises ``RuntimeError`` as ``loadable_path`` does."""
    return _file("sqlite-dash", None)


def _file(name: str, other: Any) -> str:
    path = other or os.path.join(_HOME, name)
    if not os.path.isfile(path):
        here = f"{platform.system()} on {platform.machine()}"
        if other is None and here in _BUILT_FOR:
            raise RuntimeError(f"there is no {path}, which belongs to sqlite-dash: install that again")
        raise RuntimeError(
            f"there is no {path}: sqlite-dash has binaries for {' and '.join(_BUILT_FOR)}, and this is {here}. Build "
            "dash from its source (cargo build --release) and name libdash.so in DASH_LIBRARY"
        )
    return path


def load(default: bool = False) -> None:
    """Loads dash, for all databases that are opened later. May be called any number of times.

    ``default`` makes it SQLite's default VFS, so that every file is opened through dash: call it
    before anything is opened.

    Raises ``RuntimeError`` where it can't be loaded, or another version is in this process already.
    """
    with _MUTEX:
        if default in _loaded:
            return
        path = loadable_path()
        entry = "sqlite3_dashdefault_init" if default else "sqlite3_dash_init"
        db = sqlite3.connect(":memory:")
        try:
            if _is_there(db) and not default:
                pass  # a copy of the same version serves as well
            elif hasattr(db, "enable_load_extension"):
                _load_natively(db, path, entry)
            else:
                _load_by_ctypes(path, entry)
        finally:
            db.close()
        _loaded.add(default)


def _is_there(db: sqlite3.Connection) -> bool:
    """Whether dash was loaded by other hands. Raises ``RuntimeError`` for another version."""
    try:
        (other,) = db.execute("SELECT dash_version()").fetchone()
    except sqlite3.OperationalError:
        return False
    if other != VERSION:
        raise RuntimeError(
            f"dash {other} is loaded in this process already, and this package has {VERSION}: one process can use "
            "one of them. Load neither by hand, or name the library of the other in DASH_LIBRARY"
        )
    return True


def _stem(path: str) -> str:
    """SQLite tries a path as it is, then with ``.so`` behind it, and tells why the last try failed."""
    return path[:-3] if path.endswith(".so") else path


def _failed(path: str, reason: object) -> RuntimeError:
    return RuntimeError(f"dash can't be loaded from {path}: {reason}")


def _load_natively(db: Any, path: str, entry: str) -> None:
    db.enable_load_extension(True)
    try:
        db.execute("SELECT load_extension(?, ?)", (_stem(path), entry))
    except sqlite3.Error as error:
        raise _failed(path, error) from None


def _load_by_ctypes(path: str, entry: str) -> None:
    """For a Python that was built without extension loading: its SQLite has it as a rule."""
    lib = _sqlite()
    db, message = ctypes.c_void_p(), ctypes.c_void_p()
    if lib.sqlite3_open(b":memory:", ctypes.byref(db)):
        raise _failed(path, "there is no memory")
    try:
        lib.sqlite3_enable_load_extension(db, 1)
        # Both paths end with a zero byte, which ctypes adds.
        code = lib.sqlite3_load_extension(db, os.fsencode(_stem(path)), entry.encode(), ctypes.byref(message))
        if code:
            reason = ctypes.string_at(message.value).decode(errors="replace") if message.value else f"error {code}"
            lib.sqlite3_free(message)
            raise _failed(path, reason)
    finally:
        lib.sqlite3_close(db)


def _sqlite() -> Any:
    """The very SQLite that ``sqlite3`` uses: another copy would not do."""
    import _sqlite3

    try:
        # Looked up from there, a name is found in the libraries that it is linked with.
        lib = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        lib.sqlite3_libversion.restype = ctypes.c_char_p
        version = lib.sqlite3_libversion().decode()
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        lib.sqlite3_open.argtypes = [text, ctypes.POINTER(pointer)]
        lib.sqlite3_enable_load_extension.argtypes = [pointer, ctypes.c_int]
        lib.sqlite3_load_extension.argtypes = [pointer, text, text, ctypes.POINTER(pointer)]
        lib.sqlite3_free.argtypes = [pointer]
        lib.sqlite3_close.argtypes = [pointer]
    except (OSError, AttributeError) as error:
        raise RuntimeError(
            f"{sys.executable} was built without extension loading, and its SQLite can't be reached: {error}. "
            "Take another Python, such as the one of your distribution"
        ) from None
    if version != sqlite3.sqlite_version:
        raise RuntimeError(f"found SQLite {version}, and Python uses {sqlite3.sqlite_version}")
    return lib
