//! The Go module: the driver's sources, and dash as a static library, which cgo links into the
//! program. So the program stays one file, and may be linked statically as a whole; a library
//! inside that is loaded when it runs would need a file, a folder where files may be run, and a C
//! library that loads any.

use std::path::PathBuf;

use anyhow::Result;

use crate::archive;
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};

/// See the module.
pub const PACKAGE: Package = Package { name: "go", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let archive = archive::build(built, place)?;
    let mut module = files(place.sources)?;
    let name = format!("libdash_{}_{}.a", built.target.processor.go, built.target.abi());
    module.push((name, read(&archive)?));
    module.extend(licences(place.root)?);
    let folder = place.out.join("module");
    lay(&folder, &module)?;
    Ok(vec![folder])
}
