# A service on Django: /insert adds a row of 100 bytes, /update/N reads a row and changes it, / tells
# facts. `dash-lab services` starts it, with a database that has both tables already.
#
# $ DATABASE=app.db ENGINE=sqlite_dash.django CONN_MAX_AGE=None gunicorn --workers 8 app:application
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    # Django's own would say nothing of an error without DEBUG.
    LOGGING_CONFIG=None,
    DATABASES={
        "default": {
            "ENGINE": os.environ["ENGINE"],
            "NAME": os.environ["DATABASE"],
            # Seconds that a connection is kept; Django's own value is 0, a connection a request.
            "CONN_MAX_AGE": {"None": None, "0": 0}[os.environ["CONN_MAX_AGE"]],
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
            },
        }
    },
)
application = get_wsgi_application()

from django.db import connection, models, transaction
from django.http import HttpResponse
from django.urls import path


class Note(models.Model):
    body = models.TextField()

    class Meta:
        app_label = "app"
        db_table = "note"


class Counter(models.Model):
    n = models.IntegerField()

    class Meta:
        app_label = "app"
        db_table = "counter"


def insert(_request):
    with transaction.atomic():
        Note.objects.create(body="x" * 100)
    return HttpResponse("done")


def update(_request, key):
    with transaction.atomic():
        counter = Counter.objects.get(pk=key)
        counter.n += 1
        counter.save(update_fields=["n"])
    return HttpResponse(counter.n)


def facts(_request):
    names = "sqlite_version()", "journal_mode", "synchronous"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sqlite_version(), journal_mode, synchronous"
            " FROM pragma_journal_mode, pragma_synchronous"
        )
        values = cursor.fetchone()
    return HttpResponse(", ".join(f"{name} {value}" for name, value in zip(names, values)))


urlpatterns = [path("", facts), path("insert", insert), path("update/<int:key>", update)]
