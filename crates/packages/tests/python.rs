//! The wheel: what its users have to write, and what they get, in each Python that is here.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Made, done, make};
use dash_testing::drivers::installed;
use dash_testing::machine::{is_root, runs};
use dash_testing::{Need, skip};

const PYTHON: &str = "/usr/bin/python3";

/// The wheel in an environment of its own.
struct Installed {
    made: Made,
    python: PathBuf,
}

impl Installed {
    /// Into an empty environment, by one command.
    fn new() -> Option<Self> {
        if !runs(PYTHON, &["-c", "import ensurepip, sqlite3"]) {
            skip(Need::Python, "there is no Python with venv and sqlite3");
            return None;
        }
        let made = make("python")?;
        let venv = made.folder.path().join("venv");
        done(Command::new(PYTHON).args(["-m", "venv"]).arg(&venv));
        let python = venv.join("bin/python");
        let pip = ["-m", "pip", "install", "--no-index", "--disable-pip-version-check", "-q"];
        done(Command::new(&python).args(pip).arg(&made.files[0]));
        Some(Self { made, python })
    }

    fn folder(&self) -> &Path {
        self.made.folder.path()
    }

    /// A command in that environment, in the test's folder.
    fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder());
        // pytest and others of this machine have no say.
        command.env_remove("PYTHONPATH").env_remove("DASH_LIBRARY").env_remove("SQLITE_DASH");
        command
    }

    /// What a script says.
    fn says(&self, script: &str) -> String {
        done(self.run(&self.python).args(["-c", script]))
    }

    /// The same in another Python, which finds the package here.
    fn says_in(&self, python: &Path, script: &str) -> String {
        let mut command = self.run(python);
        done(command.env("PYTHONPATH", self.packages()).args(["-B", "-c", script]))
    }

    /// Where the wheel was unpacked.
    fn packages(&self) -> PathBuf {
        let said = self.says("import sqlite_dash; print(sqlite_dash.__path__[0])");
        Path::new(said.trim()).parent().expect("a folder").to_owned()
    }

    /// What stock SQLite reads.
    fn stock(&self, database: &str, sql: &str) -> String {
        let script = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())";
        done(self.run(Path::new(PYTHON)).args(["-c", script, database, sql])).trim().to_owned()
    }
}

/// Three lines, as a page would have them.
const COMMITS: &str = "import sqlite_dash
db = sqlite_dash.connect('app.db')
with db: db.executescript('CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)')
";

#[test]
fn one_command_installs_it_and_three_lines_make_a_durable_commit() {
    let Some(it) = Installed::new() else { return };
    // Killed, so that nothing is put in order by a close.
    let killed = "print(sqlite_dash.durability(db), *db.execute('SELECT dash_engine()').fetchone(), flush=True)
import os; os.kill(os.getpid(), 9)";
    let output = it.run(&it.python).args(["-c", &format!("{COMMITS}{killed}")]).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("runs").stdout), "full wal\n");
    it.says(&format!("{COMMITS}db.close()"));
    assert_eq!(it.stock("app.db", "SELECT count(*) FROM t"), "2");
    let program = it.python.with_file_name("sqlite-dash");
    let said = done(it.run(&program).args(["inspect", "app.db"]));
    assert!(said.contains("app.db"), "{said}");
    let said = done(it.run(&it.python).args(["-m", "pip", "uninstall", "-qy", "sqlite-dash"]));
    assert_eq!(said, "");
    assert!(!program.exists());
}

#[test]
fn every_python_here_loads_it() {
    let Some(it) = Installed::new() else { return };
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten();
    let others = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin/python3")));
    let is_new_enough = "import sqlite3, sys; assert sys.version_info >= (3, 8)";
    let fits = |path: &PathBuf| runs(&path.to_string_lossy(), &["-c", is_new_enough]);
    for python in others.filter(fits).chain([PathBuf::from(PYTHON)]) {
        let said =
            it.says_in(&python, &format!("{COMMITS}print(sqlite_dash.durability(db)); db.close()"));
        assert_eq!(said, "full\n", "{}", python.display());
        // As in a Python that was built without extension loading.
        let by_ctypes = "import sqlite_dash._loading as l
l._load_natively = lambda db, path, entry: l._load_by_ctypes(path, entry)\n";
        let said = it.says_in(
            &python,
            &format!("{by_ctypes}{COMMITS}print(sqlite_dash.durability(db)); db.close()"),
        );
        assert_eq!(said, "full\n", "{}", python.display());
    }
}

#[test]
fn what_is_not_durable_is_told() {
    let Some(it) = Installed::new() else { return };
    let script = "import sqlite3, sqlite_dash
def told(what, words, error=sqlite_dash.NotDurable):
    try: what()
    except error as found: assert words in str(found), found
    else: raise AssertionError(words)
told(lambda: sqlite_dash.durability(sqlite3.connect('stock.db')), 'load()')
db = sqlite_dash.connect('host.db', durability='host')
told(lambda: db.execute('PRAGMA synchronous=NORMAL') and sqlite_dash.durability(db), 'normal')
told(lambda: sqlite_dash.durability(sqlite3.connect('stock.db')), 'not on dash')
told(lambda: sqlite_dash.connect('no/folder.db'), 'folder', sqlite3.OperationalError)
told(lambda: sqlite_dash.connect('a.db', uri=True), 'path', TypeError)
assert sqlite_dash.connect(':memory:').execute('SELECT dash_engine()').fetchone() == ('none',)
odd = sqlite_dash.connect('odd ?#%25.db')
odd.execute('CREATE TABLE t(x)'); odd.close()
first, second = (sqlite_dash.connect('two.db', timeout=0, isolation_level=None) for _ in range(2))
first.execute('BEGIN IMMEDIATE')
with sqlite_dash.explained():
    try: second.execute('BEGIN IMMEDIATE')
    except sqlite3.OperationalError as error: locked = error
assert sqlite_dash.last_error().split()[0] in str(sqlite_dash.last_error())
import os; assert os.path.exists('odd ?#%25.db'), os.listdir()
print('done')
";
    assert_eq!(it.says(script), "done\n");
}
