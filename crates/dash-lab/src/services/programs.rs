//! The services of `benches/services`: what they need is fetched and built once, in the build
//! folder, and each is started on a database.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::load::{CLIENTS, ask};
use crate::extension::escape;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt;

/// How long a service may take until it answers.
const START: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// mattn/go-sqlite3 has these in the name of the database.
const GO_SETTINGS: &str =
    "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=30000";

/// What answers requests.
pub struct Service {
    /// Begins with `django` or `go`.
    pub name: &'static str,
    program: Program,
}

enum Program {
    /// Django below gunicorn, with this value of `CONN_MAX_AGE`.
    Django(&'static str),
    Go,
}

/// All of them.
pub const SERVICES: [Service; 3] = [
    Service { name: "django", program: Program::Django("None") },
    Service { name: "django, a connection a request", program: Program::Django("0") },
    Service { name: "go", program: Program::Go },
];

/// The programs, made.
pub struct Programs {
    /// Python, with Django and gunicorn beside it.
    python: PathBuf,
    go: PathBuf,
    library: PathBuf,
    /// Where Python finds `sqlite_dash`, and where sockets are: their paths have to be short.
    scratch: TempDir,
}

impl Programs {
    /// Fetches and builds what these services need; `library` is the extension.
    pub fn make(services: &[&Service], library: &Path) -> Result<Self> {
        let own = std::env::current_exe().explain("finding the folder this program is in")?;
        // target/release/dash-lab
        let target = own.ancestors().nth(2).unwrap_or(Path::new("."));
        let named = std::env::var_os("DASH_DRIVERS").map(PathBuf::from);
        let drivers = named.unwrap_or_else(|| target.join("drivers"));
        let it = Self {
            python: drivers.join("python/bin/python"),
            go: target.join("services/go"),
            library: library.to_owned(),
            scratch: tempfile::tempdir().explain("making a folder")?,
        };
        let needs = |django: bool| {
            services.iter().any(|one| matches!(one.program, Program::Django(_)) == django)
        };
        if needs(true) {
            // The versions that the tests of drivers have, too.
            let script = source("tests/fixtures/drivers/install.sh");
            if !it.python.with_file_name("gunicorn").exists() {
                done(Command::new("sh").arg(script).arg(&drivers).arg("python"))?;
            }
            it.lay_out_package()?;
        }
        if needs(false) {
            let path = std::env::var("PATH").unwrap_or_default();
            let mut build = Command::new("sh");
            // The shell looks the program up with the new path.
            build.args(["-c", "exec go build -o \"$0\" ."]).arg(&it.go);
            build.env("PATH", format!("{path}:/usr/local/go/bin"));
            done(build.current_dir(source("benches/services/go")))?;
        }
        Ok(it)
    }

    /// The package as a wheel lays it out: its sources, and its version beside them.
    fn lay_out_package(&self) -> Result<()> {
        let what = "laying out the Python package";
        let package = self.scratch.path().join("sqlite_dash");
        fs::create_dir(&package).explain(what)?;
        let sources = source("crates/packages/python/sqlite_dash");
        for entry in fs::read_dir(sources).explain(what)? {
            let entry = entry.explain(what)?;
            symlink(entry.path(), package.join(entry.file_name())).explain(what)?;
        }
        let version = format!("VERSION = {:?}\n", env!("CARGO_PKG_VERSION"));
        fs::write(package.join("_version.py"), version).explain(what)
    }

    /// Starts a service on a database, through dash or not, and waits until it answers.
    pub fn start(&self, service: &Service, database: &Path, on_dash: bool) -> Result<Server> {
        let side = if on_dash { "dash" } else { "stock" };
        let socket = self.scratch.path().join(side);
        let log = database.with_extension("log");
        let file = File::create(&log).explain("making a log")?;
        let mut command = match service.program {
            Program::Django(age) => self.django(database, on_dash, age, &socket),
            Program::Go => self.go(database, on_dash, &socket),
        };
        for name in ["DASH_ERRORS", "SQLITE_DASH"] {
            command.env_remove(name);
        }
        match on_dash {
            true => command.env("DASH_LIBRARY", &self.library),
            false => command.env_remove("DASH_LIBRARY"),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child = command.spawn().explain(format!("starting {}", service.name))?;
        let mut server = Server { child: Some(child), socket, log };
        let begun = Instant::now();
        while ask(&server.socket, "/").is_err() {
            interrupt::check()?;
            if !server.runs()? || begun.elapsed() > START {
                return Err(server.failed("it does not answer"));
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    fn django(&self, database: &Path, on_dash: bool, age: &str, socket: &Path) -> Command {
        let mut command = Command::new(&self.python);
        let workers = CLIENTS.to_string();
        command.args(["-m", "gunicorn", "--workers", &workers, "--worker-class", "sync"]);
        // A worker that waits for a lock is not to be taken for a dead one.
        command.args(["--timeout", "120", "--log-level", "warning", "--no-control-socket"]);
        command.arg("--chdir").arg(source("benches/services/django"));
        command.arg("--bind").arg(format!("unix:{}", socket.display())).arg("app:application");
        command.env("DATABASE", database).env("CONN_MAX_AGE", age);
        let engine = if on_dash { "sqlite_dash.django" } else { "django.db.backends.sqlite3" };
        command.env("ENGINE", engine).env("PYTHONPATH", self.scratch.path());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn go(&self, database: &Path, on_dash: bool, socket: &Path) -> Command {
        let vfs = if on_dash { "vfs=dash&" } else { "" };
        let mut command = Command::new(&self.go);
        command.arg(format!("file:{}?{vfs}{GO_SETTINGS}", escape(database))).arg(socket);
        command
    }
}

/// A service that runs.
pub struct Server {
    child: Option<Child>,
    socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it says of its SQLite and its settings.
    pub fn facts(&self) -> Result<String> {
        match ask(&self.socket, "/")? {
            (200, facts) => Ok(facts),
            (status, said) => Err(self.failed(&format!("it answers {status} {said}"))),
        }
    }

    /// Lets it end, and waits for that; the end of what it wrote.
    pub fn end(mut self) -> Result<String> {
        let Some(mut child) = self.child.take() else { return Ok(String::new()) };
        let status = terminate(&mut child)?;
        match status.success() {
            true => Ok(self.wrote()),
            false => Err(self.failed(&status.to_string())),
        }
    }

    fn runs(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        Ok(child.try_wait().explain("waiting for a service")?.is_none())
    }

    fn wrote(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::new(format!("a service failed: {why}; {}", self.wrote()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(terminate(child));
        }
    }
}

fn terminate(child: &mut Child) -> Result<std::process::ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).explain("the number of a process")?);
    // A child inherits that SIGTERM is blocked, which this program waits for (`interrupt`).
    kill(pid, Signal::SIGQUIT).explain("ending a service")?;
    child.wait().explain("waiting for a service")
}

/// A file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Runs a program that has to succeed.
fn done(command: &mut Command) -> Result<()> {
    let what = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().explain(&what)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}
