"""The backend: Django's own for SQLite, whose files are opened through dash.

``OPTIONS`` are those of Django's backend, ``transaction_mode`` before Django 5.1, too, and
``durability`` (see ``sqlite_dash.uri``). Databases in memory, such as those of tests, are opened
without dash.
"""

from django import VERSION
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.sqlite3 import base

from sqlite_dash import explained, load, ready, uri

from .client import DatabaseClient
from .creation import DatabaseCreation

load()

_IMMEDIATE = """. In Django: "OPTIONS": {"transaction_mode": "IMMEDIATE"}"""


class Cursor(base.SQLiteCursorWrapper):
    """Adds dash's reason to errors."""

    def execute(self, query, params=None):
        with explained(_IMMEDIATE):
            return super().execute(query, params)

    def executemany(self, query, param_list):
        with explained(_IMMEDIATE):
            return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection."""

    client_class = DatabaseClient
    creation_class = DatabaseCreation

    def get_connection_params(self):
        name = str(self.settings_dict["NAME"])
        if name.startswith("file:") and not self.is_in_memory_db():
            raise ImproperlyConfigured(
                f"NAME is a path with the engine sqlite_dash.django, which makes the URI itself: {name}"
            )
        params = super().get_connection_params()
        params.setdefault("timeout", 30.0)
        if VERSION < (5, 1):
            self.transaction_mode = params.pop("transaction_mode", None)
        self._durability = params.pop("durability", "full")
        if not self.is_in_memory_db():
            params.update(database=uri(params["database"], self._durability), uri=True)
        return params

    def get_new_connection(self, conn_params):
        with explained():
            db = super().get_new_connection(conn_params)
            return db if self.is_in_memory_db() else ready(db, self._durability)

    def _start_transaction_under_autocommit(self):
        # As Django does since 5.1.
        self.cursor().execute(f"BEGIN {self.transaction_mode or ''}")

    def create_cursor(self, name=None):
        return self.connection.cursor(factory=Cursor)

    def _commit(self):
        with explained():
            return super()._commit()
