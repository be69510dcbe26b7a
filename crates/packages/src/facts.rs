//! What every package says of itself, and what each system is called by whom. Written once, here
//! and in the workspace's Cargo.toml.

/// The name of all packages and of the program.
pub const NAME: &str = "sqlite-dash";
/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The licence, as an SPDX expression.
pub const LICENCE: &str = env!("CARGO_PKG_LICENSE");
/// The licences' texts in the root of the repository.
pub const LICENCE_FILES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// What the licence calls those who wrote it.
pub const AUTHORS: &str = "the dash authors";
/// One line that says what it is.
pub const SUMMARY: &str =
    "dash for SQLite: a loadable extension that makes durable commits fast, with many writers";
/// The extension's file.
pub const LIBRARY: &str = "libdash.so";
/// A hard link to it. Its name makes dash the default VFS where a host names a file and no entry.
pub const LIBRARY_DEFAULT: &str = "libdashdefault.so";
/// What the extension exports, and nothing else, in the order of the alphabet.
pub const ENTRIES: [&str; 3] =
    ["sqlite3_dash_init", "sqlite3_dashdefault_init", "sqlite3_extension_init"];

/// The C library of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Libc {
    /// glibc, and the oldest version that it is built against.
    Gnu(u32, u32),
    /// musl.
    Musl,
}

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// What wheels call it, and Rust.
    pub name: &'static str,
    /// `e_machine` of its ELF files.
    pub elf_machine: u16,
    /// `process.arch` of Node.
    pub npm: &'static str,
    /// `GOARCH`.
    pub go: &'static str,
    /// The property `os.arch` of Java.
    pub java: &'static str,
    /// Debian's architecture.
    pub deb: &'static str,
}

const X86_64: Processor = Processor {
    name: "x86_64",
    elf_machine: object::elf::EM_X86_64.0,
    npm: "x64",
    go: "amd64",
    java: "amd64",
    deb: "amd64",
};
const AARCH64: Processor = Processor {
    name: "aarch64",
    elf_machine: object::elf::EM_AARCH64.0,
    npm: "arm64",
    go: "arm64",
    java: "aarch64",
    deb: "arm64",
};

/// A system that packages are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Rust's name of it.
    pub triple: &'static str,
    /// Its processor.
    pub processor: Processor,
    /// Its C library.
    pub libc: Libc,
}

impl Target {
    /// The ending of names: `gnu` or `musl`.
    pub fn abi(&self) -> &'static str {
        match self.libc {
            Libc::Gnu(..) => "gnu",
            Libc::Musl => "musl",
        }
    }

    /// The field `libc` of a package.json.
    pub fn npm_libc(&self) -> &'static str {
        match self.libc {
            Libc::Gnu(..) => "glibc",
            Libc::Musl => "musl",
        }
    }

    /// Debian's name of it.
    pub fn multiarch(&self) -> String {
        format!("{}-linux-{}", self.processor.name, self.abi())
    }
}

/// Debian 8, Ubuntu 14.04 and RHEL 7 have it, as `manylinux2014` does.
const OLDEST_GLIBC: Libc = Libc::Gnu(2, 17);

/// All of them; the first is that of this machine unless another one is asked for.
pub const TARGETS: [Target; 4] = [
    Target { triple: "x86_64-unknown-linux-gnu", processor: X86_64, libc: OLDEST_GLIBC },
    Target { triple: "aarch64-unknown-linux-gnu", processor: AARCH64, libc: OLDEST_GLIBC },
    Target { triple: "x86_64-unknown-linux-musl", processor: X86_64, libc: Libc::Musl },
    Target { triple: "aarch64-unknown-linux-musl", processor: AARCH64, libc: Libc::Musl },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_released() {
        let workflow = include_str!("../../../.github/workflows/release.yml");
        let listed: Vec<_> = workflow.lines().filter(|line| line.contains("-unknown-")).collect();
        let targets = TARGETS.map(|target| format!("          - {}", target.triple));
        assert_eq!(listed, targets);
    }
}
