//! Programs that exist go on dash by one changed line: Django's, SQLAlchemy's; Datasette by none.

use std::fs;

use crate::common::done;
use crate::common::python::Installed;

const MODELS: &str = "from django.db import models

class Note(models.Model):
    body = models.TextField()
";

/// Each notes on which database it ran, and on what engine.
const TESTS: &str = "from django.db import connection
from django.test import TestCase, TransactionTestCase
from notes.models import Note

def note(case):
    Note.objects.create(body='a')
    case.assertEqual(Note.objects.count(), 1)
    (engine,) = connection.cursor().execute('SELECT dash_engine()').fetchone()
    with open('engines', 'a') as file:
        file.write(engine + '\\n')

class First(TestCase):
    def test(self):
        note(self)

class Second(TransactionTestCase):
    def test(self):
        note(self)
";

const ADDS: &str = "from notes.models import Note
Note.objects.create(body='a')";

/// A project of Django's on stock SQLite, with a row in its database.
struct Project(Installed);

impl Project {
    fn new() -> Option<Self> {
        let it = Self(Installed::beside_drivers()?);
        let python = &it.0.python;
        done(it.0.with(python).args(["-m", "django", "startproject", "site_of_a_test", "."]));
        it.manage(&["startapp", "notes"]);
        it.edit("notes/models.py", |_| MODELS.to_owned());
        it.edit("notes/tests.py", |_| TESTS.to_owned());
        it.settings(|text| text.replace("INSTALLED_APPS = [", "INSTALLED_APPS = ['notes',"));
        it.manage(&["makemigrations", "notes"]);
        it.manage(&["migrate", "-v0"]);
        it.manage(&["shell", "-c", ADDS]);
        Some(it)
    }

    fn manage(&self, arguments: &[&str]) -> String {
        done(self.0.with(&self.0.python).arg("manage.py").args(arguments))
    }

    fn edit(&self, file: &str, change: impl FnOnce(String) -> String) {
        let path = self.0.folder().join(file);
        let text = fs::read_to_string(&path).expect("a file");
        fs::write(&path, change(text)).expect("written");
    }

    fn settings(&self, change: impl FnOnce(String) -> String) {
        self.edit("site_of_a_test/settings.py", change);
    }

    /// The line.
    fn go_on_dash(&self) {
        self.settings(|text| text.replace("django.db.backends.sqlite3", "sqlite_dash.django"));
    }

    /// What engines the tests ran on.
    fn tests(&self, options: &[&str]) -> Vec<String> {
        self.manage(&[&["test", "--noinput", "-v0"], options].concat());
        let path = self.0.folder().join("engines");
        let engines = fs::read_to_string(&path).expect("written by the tests");
        fs::remove_file(&path).expect("there");
        engines.lines().map(str::to_owned).collect()
    }

    fn names(&self) -> Vec<String> {
        dash_testing::names::names(self.0.folder())
    }
}

#[test]
fn a_django_project_goes_on_dash_by_one_line() {
    let Some(it) = Project::new() else { return };
    it.go_on_dash();
    it.manage(&["migrate", "-v0"]);
    it.manage(&["shell", "-c", ADDS]);
    let asks = "import sqlite_dash
from django.db import connection
connection.ensure_connection()
print(sqlite_dash.durability(connection.connection))";
    assert_eq!(it.manage(&["shell", "-v0", "-c", asks]).trim(), "full");
    assert_eq!(it.0.stock("db.sqlite3", "SELECT count(*) FROM notes_note"), "2");
    // As Django's documentation has it, and with connections that stay.
    it.settings(|text| {
        let more = "DATABASES['default'].update(CONN_MAX_AGE=None, OPTIONS={
    'transaction_mode': 'IMMEDIATE', 'timeout': 5,
    'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL'})";
        format!("{text}\n{more}\n")
    });
    assert_eq!(it.manage(&["shell", "-v0", "-c", asks]).trim(), "full");
}

#[test]
fn djangos_shell_of_the_database_is_on_dash() {
    if !dash_testing::machine::has_sqlite3() {
        return;
    }
    let Some(it) = Project::new() else { return };
    it.go_on_dash();
    it.manage(&["migrate", "-v0"]);
    let said = it.manage(&["dbshell", "--", "-cmd", "SELECT dash_engine()"]);
    assert_eq!(said.trim(), "wal");
}

#[test]
fn djangos_tests_run_in_memory_and_in_files_side_by_side() {
    let Some(it) = Project::new() else { return };
    it.go_on_dash();
    assert_eq!(it.tests(&[]), ["none", "none"]);
    assert_eq!(it.tests(&["--parallel", "2"]), ["none", "none"]);
    let before = it.names();
    let file = "DATABASES['default']['TEST'] = {'NAME': BASE_DIR / 'test.sqlite3'}";
    it.settings(|text| format!("{text}\n{file}\n"));
    assert_eq!(it.tests(&[]), ["wal", "wal"]);
    assert_eq!(it.tests(&["--parallel", "2"]), ["wal", "wal"]);
    assert_eq!(it.names(), before);
    for _ in 0..2 {
        assert_eq!(it.tests(&["--parallel", "2", "--keepdb"]), ["wal", "wal"]);
    }
    assert_eq!(it.tests(&[]), ["wal", "wal"]);
}

#[test]
fn djangos_errors_say_who_has_the_lock() {
    let Some(it) = Project::new() else { return };
    it.go_on_dash();
    let script = "
from django.db import OperationalError, connection
import sqlite_dash
other = sqlite_dash.connect('db.sqlite3', isolation_level=None)
other.execute('BEGIN IMMEDIATE')
connection.cursor().execute('PRAGMA busy_timeout=0')
for what in (lambda: connection.cursor().execute('DELETE FROM notes_note'),
             lambda: connection.cursor().executemany('DELETE FROM notes_note WHERE id=%s', [(1,)])):
    try: what()
    except OperationalError as error: print('has been writing' in str(error))
";
    assert_eq!(it.manage(&["shell", "-v0", "-c", script]).trim(), "True\nTrue");
    // As Django's atomic() begins, a transaction that has read is refused at once.
    let late = "
from django.db import OperationalError, connection, transaction
from notes.models import Note
import sqlite_dash
other = sqlite_dash.connect('db.sqlite3', isolation_level=None)
def writes():
    with transaction.atomic():
        Note.objects.count()
        other.execute('DELETE FROM notes_note')
        Note.objects.create(body='b')
try: writes()
except OperationalError as error: print(str(error).split('In Django: ')[1])
";
    let option = r#""OPTIONS": {"transaction_mode": "IMMEDIATE"}"#;
    assert_eq!(it.manage(&["shell", "-v0", "-c", late]).trim(), option);
    it.settings(|text| format!("{text}\nDATABASES['default'].update({{{option}}})\n"));
    let begins = "
from django.db import transaction
import sqlite3, sqlite_dash
other = sqlite_dash.connect('db.sqlite3', isolation_level=None, timeout=0)
with transaction.atomic():
    try: other.execute('BEGIN IMMEDIATE')
    except sqlite3.OperationalError as error: print('locked' in str(error))
";
    assert_eq!(it.manage(&["shell", "-v0", "-c", begins]).trim(), "True");
    it.settings(|text| text.replace("BASE_DIR / 'db.sqlite3'", "'/nonesuch/db.sqlite3'"));
    let why = "
from django.db import OperationalError, connection
try: connection.ensure_connection()
except OperationalError as error: print('No such file or directory' in str(error))
";
    assert_eq!(it.manage(&["shell", "-v0", "-c", why]).trim(), "True");
}

#[test]
fn sqlalchemy_goes_on_dash_by_one_line() {
    let Some(it) = Installed::beside_drivers() else { return };
    let script = |url: &str| {
        format!(
            "from sqlalchemy import create_engine, text
engine = create_engine({url:?})
with engine.begin() as connection:
    connection.execute(text('CREATE TABLE IF NOT EXISTS t(x)'))
    connection.execute(text('INSERT INTO t VALUES (1)'))
"
        )
    };
    it.says(&script("sqlite:///app.db"));
    let on_dash = script("sqlite+dash:///app.db");
    let asks = "import sqlite_dash
with engine.connect() as connection:
    print(sqlite_dash.durability(connection.connection.driver_connection))
engine.dispose()";
    assert_eq!(it.says(&format!("{on_dash}{asks}")), "full\n");
    assert_eq!(it.stock("app.db", "SELECT count(*) FROM t"), "2");
    let errors = "from sqlalchemy.exc import ArgumentError, OperationalError
with create_engine('sqlite+dash://').connect() as memory:
    print(memory.execute(text('SELECT dash_engine()')).scalar())
late = create_engine('sqlite+dash:///app.db?timeout=0&durability=host').connect()
with engine.begin() as connection:
    connection.execute(text('DELETE FROM t'))
    try: late.execute(text('DELETE FROM t'))
    except OperationalError as error: print('has been writing' in str(error))
try: create_engine('sqlite+dash:///file:app.db?uri=true').connect()
except ArgumentError as error: print(error)
try: create_engine('sqlite+dash:///app.db?timeuot=5').connect()
except ArgumentError as error: print(error)";
    let said = it.says(&format!("{on_dash}{errors}"));
    let refused =
        "sqlite+dash takes a path and makes the URI itself\nsqlite+dash has no parameter timeuot";
    assert_eq!(said, format!("none\nTrue\n{refused}\n"));
}

#[test]
fn datasette_reads_through_dash_beside_a_writer() {
    let Some(it) = Installed::beside_drivers() else { return };
    let script = "import sqlite_dash, subprocess, sys
db = sqlite_dash.connect('app.db')
with db: db.executescript('CREATE TABLE t(x); INSERT INTO t VALUES (1), (2)')
with db: db.execute('INSERT INTO t VALUES (3)')
get = '/app.json?_shape=arrays&sql=select+count(*),dash_engine()+from+t'
subprocess.run([sys.executable, '-m', 'datasette', 'app.db', '--get', get], check=True)";
    let said = it.says(script);
    assert!(said.contains("[[3, \"wal\"]]") || said.contains("[[3, \"plain\"]]"), "{said}");
}
