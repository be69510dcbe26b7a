//! The package of Debian and of what is made of it. `dpkg-deb` makes it. SQLite finds the library
//! there by its name alone: `.load libdash`.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::facts::{
    AUTHORS, LIBRARY, LIBRARY_DEFAULT, LICENCE, LICENCE_FILES, Libc, NAME, VERSION,
};
use crate::library::Built;
use crate::package::{Package, Place, lay, read};
use crate::pages::pages;
use crate::run::run;

/// What `apt` prints: a line of 80 characters at most, and more.
const SYNOPSIS: &str = "SQLite extension: fast durable commits, with many writers
 Programs load it, open file:app.db?vfs=dash, and stay on stock SQLite: in WAL
 mode writers queue, and connections that commit together share a disk flush.";

/// See the module.
pub const PACKAGE: Package = Package { name: "deb", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let Libc::Gnu(major, minor) = built.target.libc else {
        eprintln!("deb: none for {}: Debian's C library is glibc", built.target.triple);
        return Ok(Vec::new());
    };
    let (major, minor) = built.glibc.unwrap_or((major, minor)).max((major, minor));
    let libraries = format!("usr/lib/{}", built.target.multiarch());
    let program = format!("usr/bin/{NAME}");
    let documents = format!("usr/share/doc/{NAME}");
    let changes = format!("{documents}/changelog");
    let mut contents = vec![
        (format!("{libraries}/{LIBRARY}"), read(&built.library)?),
        (program.clone(), read(&built.program)?),
        (format!("{documents}/copyright"), copyright(place)?.into_bytes()),
        (changes.clone(), read(&place.root.join("CHANGELOG.md"))?),
    ];
    contents.extend(pages()?.into_iter().map(|(name, text)| (format!("usr/{name}"), text)));
    let size: usize = contents.iter().map(|(_, data)| data.len().div_ceil(1024)).sum();
    let architecture = built.target.processor.deb;
    let control = format!(
        "Package: {NAME}\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: {AUTHORS}\n\
        Section: database\nPriority: optional\nInstalled-Size: {size}\n\
        Depends: libc6 (>= {major}.{minor})\nSuggests: sqlite3\nDescription: {SYNOPSIS}\n"
    );
    contents.push(("DEBIAN/control".to_owned(), control.into_bytes()));
    contents.push(("DEBIAN/triggers".to_owned(), b"activate-noawait ldconfig\n".to_vec()));
    let folder = place.out.join("unpacked");
    lay(&folder, &contents)?;
    let packed = contents.iter().map(|(name, _)| name).filter(|name| name.contains("/man/"));
    run(Command::new("gzip").arg("-9n").args(packed.chain([&changes])).current_dir(&folder))?;
    // Not a symbolic link, which PHP follows before it loads.
    let [library, link] = [LIBRARY, LIBRARY_DEFAULT].map(|name| folder.join(&libraries).join(name));
    std::fs::hard_link(library, link)?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&folder))?;
    std::fs::set_permissions(folder.join(program), PermissionsExt::from_mode(0o755))?;
    let path = place.out.join(format!("{NAME}_{VERSION}_{architecture}.deb"));
    // Debian 11 can't unpack what Ubuntu's takes unless it is told.
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--build", "--root-owner-group", "-Zxz"]).arg(&folder).arg(&path);
    run(dpkg.stdout(std::process::Stdio::null()))?;
    Ok(vec![path])
}

/// Debian's file of rights, which quotes the licences: an empty line there is a point.
fn copyright(place: &Place<'_>) -> Result<String> {
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
        Upstream-Name: {NAME}\n\nFiles: *\nCopyright: {AUTHORS}\nLicense: {}\n",
        LICENCE.replace(" OR ", " or ")
    );
    for file in LICENCE_FILES {
        writeln!(text, " .")?;
        for line in String::from_utf8(read(&place.root.join(file))?)?.lines() {
            writeln!(text, " {}", if line.trim().is_empty() { "." } else { line })?;
        }
    }
    Ok(text)
}
