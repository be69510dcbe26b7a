"""``manage.py dbshell``: the shell of the program ``sqlite-dash``, which opens through dash."""

from django.db.backends.base.client import BaseDatabaseClient

from sqlite_dash import program_path


class DatabaseClient(BaseDatabaseClient):
    """See the module."""

    executable_name = "sqlite-dash"

    @classmethod
    def settings_to_cmd_args_env(cls, settings_dict, parameters):
        options = ["--", *parameters] if parameters else []
        return [program_path(), "shell", str(settings_dict["NAME"]), *options], None
