//! The Python wheel: the package `sqlite_dash` with the binaries inside. It has no compiled module,
//! so one wheel serves every Python of a system. It is written here, as no tool of Python's packs
//! what was built elsewhere without a build of its own.

use std::io::{Cursor, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::facts::{LIBRARY, LICENCE, LICENCE_FILES, Libc, NAME, SUMMARY, Target, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, read};

/// See the module.
pub const PACKAGE: Package = Package { name: "python", make };

/// The package's name where it is one of Python's.
const MODULE: &str = "sqlite_dash";

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let tags = platforms(&built.target, built.glibc);
    let name = format!("{MODULE}-{VERSION}-py3-none-{}.whl", tags.join("."));
    let mut wheel = Wheel::new();
    for (path, data) in files(place.sources)? {
        // What describes the wheel goes where installers look for that.
        match path.as_str() {
            "entry_points.txt" => wheel.add(&about(&path), &data, false)?,
            "README.md" => wheel.add(&about("METADATA"), &metadata(&data), false)?,
            _ => wheel.add(&path, &data, false)?,
        }
    }
    for file in LICENCE_FILES {
        wheel.add(&about(&format!("licenses/{file}")), &read(&place.root.join(file))?, false)?;
    }
    wheel.add(&format!("{MODULE}/{LIBRARY}"), &read(&built.library)?, true)?;
    wheel.add(&format!("{MODULE}/{NAME}"), &read(&built.program)?, true)?;
    wheel.add(
        &format!("{MODULE}/_version.py"),
        format!("VERSION = {VERSION:?}\n").as_bytes(),
        false,
    )?;
    wheel.add(&about("WHEEL"), description(&tags).as_bytes(), false)?;
    let path = place.out.join(name);
    std::fs::write(&path, wheel.finish()?)
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(vec![path])
}

/// A file of the folder that describes the wheel.
fn about(file: &str) -> String {
    format!("{MODULE}-{VERSION}.dist-info/{file}")
}

/// The names of the systems that the binaries run on, as Python has them.
fn platforms(target: &Target, glibc: Option<(u32, u32)>) -> Vec<String> {
    let processor = target.processor.name;
    match target.libc {
        Libc::Musl => vec![format!("musllinux_1_2_{processor}")],
        Libc::Gnu(major, minor) => {
            let floor = glibc.max(Some((major, minor))).unwrap_or((major, minor));
            let mut tags = vec![format!("manylinux_{}_{}_{processor}", floor.0, floor.1)];
            // The name that pip knew before it knew those with numbers.
            if floor == (2, 17) {
                tags.push(format!("manylinux2014_{processor}"));
            }
            tags
        }
    }
}

/// The file WHEEL.
fn description(tags: &[String]) -> String {
    let tags: String = tags.iter().map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    format!(
        "Wheel-Version: 1.0\nGenerator: dash-packages {VERSION}\nRoot-Is-Purelib: false\n{tags}"
    )
}

/// The file METADATA, which ends with the page that PyPI shows.
fn metadata(page: &[u8]) -> Vec<u8> {
    let licences: String =
        LICENCE_FILES.iter().map(|file| format!("License-File: {file}\n")).collect();
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENCE}\n{licences}Requires-Python: >=3.8\n\
         Classifier: Operating System :: POSIX :: Linux\n\
         Classifier: Programming Language :: Python :: 3\n\
         Classifier: Topic :: Database :: Database Engines/Servers\n\
         Classifier: Typing :: Typed\n\
         Description-Content-Type: text/markdown\n\n"
    )
    .into_bytes();
    text.extend_from_slice(page);
    text
}

/// A wheel that is being written: the same bytes for the same contents.
struct Wheel {
    zip: ZipWriter<Cursor<Vec<u8>>>,
    record: String,
}

impl Wheel {
    fn new() -> Self {
        Self { zip: ZipWriter::new(Cursor::default()), record: String::new() }
    }

    fn add(&mut self, name: &str, data: &[u8], is_program: bool) -> Result<()> {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(data));
        self.record.push_str(&format!("{name},sha256={hash},{}\n", data.len()));
        self.put(name, data, is_program)
    }

    fn put(&mut self, name: &str, data: &[u8], is_program: bool) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(if is_program { 0o755 } else { 0o644 });
        self.zip.start_file(name, options)?;
        self.zip.write_all(data)?;
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        let name = about("RECORD");
        let record = format!("{}{name},,\n", self.record);
        self.put(&name, record.as_bytes(), false)?;
        Ok(self.zip.finish()?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::TARGETS;

    #[test]
    fn a_wheel_says_which_systems_it_runs_on() {
        let [gnu, _, musl, _] = TARGETS;
        let both = ["manylinux_2_17_x86_64", "manylinux2014_x86_64"];
        assert_eq!(platforms(&gnu, Some((2, 14))), both);
        assert_eq!(platforms(&gnu, Some((2, 34))), ["manylinux_2_34_x86_64"]);
        assert_eq!(platforms(&musl, None), ["musllinux_1_2_x86_64"]);
    }
}
