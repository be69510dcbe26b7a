"""Django's database backend on dash: ``"ENGINE": "sqlite_dash.django"``; ``NAME`` stays a path."""
