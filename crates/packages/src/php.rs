//! The folder for PHP: a file to require, the library, the page. PHP loads extensions of SQLite
//! from a folder that php.ini names, and Composer brings none.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::facts::{LIBRARY, LIBRARY_DEFAULT, NAME, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "php", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let mut contents = files(place.sources)?;
    contents.push((LIBRARY.to_owned(), read(&built.library)?));
    contents.push(("version.php".to_owned(), format!("<?php return '{VERSION}';\n").into_bytes()));
    contents.extend(licences(place.root)?);
    let folder = place.out.join(NAME);
    lay(&folder, &contents)?;
    // Not a symbolic link, which PHP follows before it loads.
    std::fs::hard_link(folder.join(LIBRARY), folder.join(LIBRARY_DEFAULT))?;
    let path = place.out.join(format!("{NAME}-php-{VERSION}-{}.tar.gz", built.target.multiarch()));
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
    run(Command::new("tar").arg("-czf").arg(&path).args(owner).arg("-C").arg(place.out).arg(NAME))?;
    Ok(vec![path])
}
