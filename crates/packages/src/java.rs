//! The jar: a JDBC driver before sqlite-jdbc's, with the library of one system inside. `javac` and
//! `jar` make it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::facts::{LIBRARY, NAME, SUMMARY, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "java", make };

/// The package's name where it is one of Java's.
const MODULE: &str = "sqlitedash";
/// The oldest Java that it runs on.
const OLDEST: &str = "11";

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let system = format!("linux-{}-{}", built.target.processor.java, built.target.abi());
    let driver = format!("{MODULE}.Driver\n");
    let mut contents = vec![
        (format!("{MODULE}/{system}/{LIBRARY}"), read(&built.library)?),
        ("META-INF/services/java.sql.Driver".to_owned(), driver.into_bytes()),
    ];
    contents.extend(
        licences(place.root)?.into_iter().map(|(name, text)| (format!("META-INF/{name}"), text)),
    );
    let classes = place.out.join("classes");
    lay(&classes, &contents)?;
    let mut javac = Command::new("javac");
    javac.args(["--release", OLDEST, "-Xlint:all", "-Werror", "-d"]).arg(&classes);
    for (name, _) in files(place.sources)?.iter().filter(|(name, _)| name.ends_with(".java")) {
        javac.arg(place.sources.join(name));
    }
    run(&mut javac)?;
    let manifest = place.out.join("manifest");
    let said = format!(
        "Implementation-Title: {SUMMARY}\nImplementation-Version: {VERSION}\nAutomatic-Module-Name: {MODULE}\n"
    );
    std::fs::write(&manifest, said)?;
    let path = place.out.join(format!("{NAME}-{VERSION}-{system}.jar"));
    let mut jar = Command::new("jar");
    jar.arg("--create").arg("--file").arg(&path).arg("--manifest").arg(&manifest);
    run(jar.arg("-C").arg(&classes).arg("."))?;
    Ok(vec![path])
}
