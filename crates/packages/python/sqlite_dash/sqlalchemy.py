"""SQLAlchemy's dialect ``sqlite+dash``: ``create_engine("sqlite+dash:///app.db")``."""

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import ArgumentError

from . import explained, load, ready, uri


class Dialect(SQLiteDialect_pysqlite):
    """As ``sqlite``, through dash: WAL mode, durable commits, a timeout of 30 seconds.

    ``?durability=host`` leaves it to ``PRAGMA synchronous`` (see ``sqlite_dash.uri``).
    """

    driver = "dash"
    supports_statement_cache = True

    def create_connect_args(self, url):
        durability = url.query.get("durability", "full")
        (name, *rest), options = super().create_connect_args(url.difference_update_query(["durability"]))
        if options.get("uri"):
            raise ArgumentError("sqlite+dash takes a path and makes the URI itself")
        # SQLAlchemy leaves out what it does not know.
        unknown = url.query.keys() - options.keys() - {"durability"}
        if unknown:
            raise ArgumentError(f"sqlite+dash has no parameter {', '.join(sorted(unknown))}")
        load()
        options.setdefault("timeout", 30.0)
        self._durability = None
        if name != ":memory:":
            self._durability = durability
            name, options["uri"] = uri(name, durability), True
        return (name, *rest), options

    def connect(self, *arguments, **options):
        with explained():
            db = super().connect(*arguments, **options)
            return ready(db, self._durability) if self._durability else db

    def do_execute(self, cursor, statement, parameters, context=None):
        with explained():
            super().do_execute(cursor, statement, parameters, context)

    def do_executemany(self, cursor, statement, parameters, context=None):
        with explained():
            super().do_executemany(cursor, statement, parameters, context)

    def do_commit(self, dbapi_connection):
        with explained():
            super().do_commit(dbapi_connection)
