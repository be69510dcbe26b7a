//! The gem, with the library of one system inside. `gem` makes it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::facts::{AUTHORS, LIBRARY, LICENCE, Libc, NAME, SUMMARY, Target, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "ruby", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let mut contents = files(place.sources)?;
    let version =
        format!("# Written by dash-packages.\nmodule SqliteDash\n  VERSION = {VERSION:?}\nend\n");
    contents.push(("lib/sqlite_dash/version.rb".to_owned(), version.into_bytes()));
    contents.push((format!("lib/sqlite_dash/{LIBRARY}"), read(&built.library)?));
    contents.extend(licences(place.root)?);
    let names: Vec<_> = contents.iter().map(|(name, _)| name.as_str()).collect();
    let platform = platform(&built.target);
    let description = description(&platform, &names);
    contents.push((format!("{NAME}.gemspec"), description.into_bytes()));
    let folder = place.out.join("unpacked");
    lay(&folder, &contents)?;
    let path = place.out.join(format!("{NAME}-{VERSION}-{platform}.gem"));
    let mut gem = Command::new("gem");
    gem.args(["build", "--silent", "--output"]).arg(&path).arg(format!("{NAME}.gemspec"));
    run(gem.current_dir(&folder))?;
    Ok(vec![path])
}

/// What RubyGems calls a system. Only its newer releases know the ending `-gnu`.
fn platform(target: &Target) -> String {
    match target.libc {
        Libc::Gnu(..) => format!("{}-linux", target.processor.name),
        Libc::Musl => format!("{}-linux-musl", target.processor.name),
    }
}

fn description(platform: &str, files: &[&str]) -> String {
    let licences: Vec<_> = LICENCE.split(" OR ").collect();
    format!(
        "Gem::Specification.new do |spec|
  spec.name = {NAME:?}
  spec.version = {VERSION:?}
  spec.platform = {platform:?}
  spec.licenses = {licences:?}
  spec.summary = {SUMMARY:?}
  spec.authors = [{AUTHORS:?}]
  spec.files = {files:?}
  spec.required_ruby_version = \">= 2.7\"
  spec.add_dependency \"sqlite3\", \">= 1.4\", \"< 3\"
end
"
    )
}
