"""Test databases that are files: made, copied and removed with what lies beside them."""

import contextlib
import os
import shutil

from django.db.backends.sqlite3 import creation

from sqlite_dash import connect


class DatabaseCreation(creation.DatabaseCreation):
    """See the module. Test databases in memory are left to Django."""

    def _create_test_db(self, verbosity, autoclobber, keepdb=False):
        name = super()._create_test_db(verbosity, autoclobber, keepdb)
        if not keepdb and not self.is_in_memory_db(name):
            _remove(str(name))
        return name

    def _clone_test_db(self, suffix, verbosity, keepdb=False):
        source = str(self.connection.settings_dict["NAME"])
        target = str(self.get_test_db_clone_settings(suffix)["NAME"])
        if self.is_in_memory_db(source) or self.is_in_memory_db(target):
            return super()._clone_test_db(suffix, verbosity, keepdb)
        if keepdb and os.path.exists(target):
            return None
        _remove(target)
        # A copy of the file alone would lack what is in the log.
        with contextlib.closing(connect(source)) as db:
            db.execute("SELECT dash_backup(?)", (target,)).fetchall()
        return None

    def _destroy_test_db(self, test_database_name, verbosity):
        if test_database_name and not self.is_in_memory_db(test_database_name):
            _remove(str(test_database_name))


def _remove(database):
    """Removes it, and what dash and SQLite leave beside a database that was not closed."""
    for ending in ("", "-dashlog", "-dash", "-shadow", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            try:
                os.remove(database + ending)
            except IsADirectoryError:  # a journal that keeps stock SQLite out
                shutil.rmtree(database + ending)
