//! The wheel: what its users have to write, and what they get, in each Python that is here.

use std::fs;
use std::path::PathBuf;

use crate::common::done;
use crate::common::python::{Installed, PYTHON};
use dash_testing::machine::{is_root, runs};

/// Three lines, as a page would have them.
const COMMITS: &str = "import sqlite_dash
db = sqlite_dash.connect('app.db')
with db: db.executescript('CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)')
";

/// How a script sees what it must be told.
const TOLD: &str = "import os, sqlite3, sqlite_dash
def told(words, error, what):
    try: what()
    except error as found: assert words in str(found), (found, sqlite_dash.last_error())
    else: raise AssertionError(words)
";

#[test]
fn one_command_installs_it_and_three_lines_make_a_durable_commit() {
    let Some(it) = Installed::alone() else { return };
    // Killed, so that nothing is put in order by a close.
    let killed = "print(sqlite_dash.durability(db), *db.execute('SELECT dash_engine()').fetchone(), flush=True)
os.kill(os.getpid(), 9)";
    let output = it.run(&it.python).args(["-c", &format!("import os\n{COMMITS}{killed}")]).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("runs").stdout), "full wal\n");
    it.says(&format!("{COMMITS}db.close()"));
    assert_eq!(it.stock("app.db", "SELECT count(*) FROM t"), "2");
    let program = it.python.with_file_name("sqlite-dash");
    let said = done(it.run(&program).args(["inspect", "app.db"]));
    assert!(said.contains("app.db"), "{said}");
    done(it.run(&it.python).args(["-m", "pip", "uninstall", "-qy", "sqlite-dash"]));
    assert!(!program.exists());
    assert!(!it.packages.join("sqlite_dash").exists());
}

#[test]
fn every_python_here_loads_it() {
    let Some(it) = Installed::unpacked() else { return };
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten();
    let others = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin/python3")));
    let is_new_enough = "import sqlite3, sys; assert sys.version_info >= (3, 8)";
    let fits = |path: &PathBuf| runs(&path.to_string_lossy(), &["-c", is_new_enough]);
    // As in a Python that was built without extension loading.
    let by_ctypes = "import sqlite_dash._loading as l
l._load_natively = lambda db, path, entry: l._load_by_ctypes(path, entry)\n";
    for python in others.filter(fits).chain([PathBuf::from(PYTHON)]) {
        for before in ["", by_ctypes] {
            let script = format!("{before}{COMMITS}print(sqlite_dash.durability(db)); db.close()");
            assert_eq!(it.says_in(&python, &script), "full\n", "{}", python.display());
        }
    }
}

#[test]
fn what_is_not_durable_is_told() {
    let Some(it) = Installed::unpacked() else { return };
    let script = "
no = sqlite_dash.NotDurable
told('load()', no, lambda: sqlite_dash.durability(sqlite3.connect('stock.db')))
host = sqlite_dash.connect('host.db', durability='host')
host.execute('PRAGMA synchronous=NORMAL')
told('normal', no, lambda: sqlite_dash.durability(host))
told('not on dash', no, lambda: sqlite_dash.durability(sqlite3.connect('stock.db')))
shadow = sqlite3.connect('file:shadow.db?vfs=dash&journal_mode=shadow', uri=True)
assert sqlite_dash.durability(shadow) == 'full'
told('no/folder', sqlite3.OperationalError, lambda: sqlite_dash.connect('no/folder/a.db'))
told('a path', TypeError, lambda: sqlite_dash.connect('a.db', uri=True))
told('dash_durability', sqlite3.OperationalError, lambda: sqlite_dash.connect('a.db', durability='x'))
for no_file in (':memory:', ''):
    assert sqlite_dash.connect(no_file).execute('SELECT dash_engine()').fetchone() == ('none',)
sqlite_dash.connect('odd ?#%25.db').execute('CREATE TABLE t(x)')
assert os.path.exists('odd ?#%25.db'), os.listdir()
";
    it.says(&format!("{TOLD}{script}"));
}

#[test]
fn an_error_says_who_has_the_lock() {
    let Some(it) = Installed::unpacked() else { return };
    let script = "
two = [sqlite_dash.connect('two.db', timeout=0, isolation_level=None) for _ in range(2)]
two[0].execute('BEGIN IMMEDIATE')
def begin():
    with sqlite_dash.explained(): two[1].execute('BEGIN IMMEDIATE')
told('has been writing', sqlite3.OperationalError, begin)
";
    it.says(&format!("{TOLD}{script}"));
}

#[test]
fn a_library_that_is_missing_or_another_version_is_told() {
    let Some(it) = Installed::unpacked() else { return };
    let script = "
os.environ['DASH_LIBRARY'] = '/nonesuch/libdash.so'
told('Build dash', RuntimeError, sqlite_dash.load)
os.environ['DASH_LIBRARY'] = sqlite_dash.__file__
told('can\\'t be loaded', RuntimeError, sqlite_dash.load)
# A file that was removed from the package.
del os.environ['DASH_LIBRARY']
library = sqlite_dash.loadable_path()
os.rename(library, library + '.gone')
told('install that again', RuntimeError, sqlite_dash.load)
os.rename(library + '.gone', library)
# The loader's own reason, and not that there is no libdash.so.so.
with open('libdash.so', 'w') as file: file.write('x')
os.environ['DASH_LIBRARY'] = os.path.abspath('libdash.so')
told('file too short', RuntimeError, sqlite_dash.load)
os.remove('libdash.so')
del os.environ['DASH_LIBRARY']
import shutil
shutil.copy(sqlite_dash.loadable_path(), 'libdash.so')
db = sqlite3.connect(':memory:')
db.enable_load_extension(True)
db.load_extension('./libdash.so')
sqlite_dash.load()
assert sqlite_dash.durability(sqlite_dash.connect('a.db')) == 'full'
told('a second copy', RuntimeError, lambda: sqlite_dash.load(default=True))
sqlite_dash._loading._loaded.clear()
sqlite_dash._loading.VERSION = '9.9.9'
told('this package has 9.9.9', RuntimeError, sqlite_dash.load)
";
    it.says(&format!("{TOLD}{script}"));
}

#[test]
fn a_variable_puts_a_program_on_dash_that_knows_nothing_of_it() {
    let Some(it) = Installed::alone() else { return };
    let script = "import sqlite3
db = sqlite3.connect('app.db')
print(*db.execute('PRAGMA journal_mode=WAL').fetchone())
print(*db.execute('SELECT dash_engine()').fetchone())";
    let says = |value: &str, script: &str| {
        done(it.run(&it.python).env("SQLITE_DASH", value).args(["-W", "error", "-c", script]))
    };
    assert_eq!(says("1", script), "wal\nwal\n");
    let functions = r"SELECT count(*) FROM pragma_function_list WHERE name LIKE \'dash%\'";
    let without = script.replace("SELECT dash_engine()", functions);
    for off in ["", "0", "off", "No", "false"] {
        assert_eq!(says(off, &without), "wal\n0\n", "{off:?}");
    }
    assert_eq!(done(it.run(&it.python).args(["-c", &without])), "wal\n0\n");
}

/// As in an image whose packages belong to root.
#[test]
fn a_folder_of_packages_may_be_read_only() {
    let Some(it) = Installed::unpacked() else { return };
    done(it.run("chmod").args(["-R", "a-w,a+rX", "."]));
    let work = tempfile::tempdir().expect("a folder");
    // Nothing is read-only to root.
    let mut python = match is_root() {
        true => it.with("setpriv"),
        false => it.with(&it.python),
    };
    if is_root() {
        done(it.run("chmod").args(["a+rwx"]).args([work.path(), it.folder()]));
        python.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(PYTHON);
    }
    python.current_dir(work.path()).args(["-c", &format!("{COMMITS}db.close()")]);
    let output = python.output().expect("runs");
    done(it.run("chmod").args(["-R", "u+w", "."]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
