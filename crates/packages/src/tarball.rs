//! The tarball, which `tar -C /usr/local --strip-components=1` installs; beside it a Dockerfile to
//! copy from, what it is made of (CycloneDX), and the sums of these.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::archive;
use crate::facts::{LIBRARY, LIBRARY_DEFAULT, LICENCE, NAME, SUMMARY, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::pages::pages;
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "tarball", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let name = format!("{NAME}-{VERSION}-{}", built.target.triple);
    let bom = serde_json::to_vec_pretty(&materials(place.root, built.target.triple)?)?;
    let program = format!("bin/{NAME}");
    let mut contents = vec![
        (program.clone(), read(&built.program)?),
        (format!("lib/{LIBRARY}"), read(&built.library)?),
        ("lib/libdash.a".to_owned(), read(&archive::build(built, place)?)?),
    ];
    let headers = files(place.sources)?;
    contents.extend(headers.into_iter().map(|(name, text)| (format!("include/{name}"), text)));
    contents.extend(pages()?);
    let documents = format!("share/doc/{NAME}");
    let texts = licences(place.root)?;
    contents.extend(texts.into_iter().map(|(name, text)| (format!("{documents}/{name}"), text)));
    contents.push((format!("{documents}/bom.cdx.json"), bom.clone()));
    let folder = place.out.join(&name);
    lay(&folder, &contents)?;
    // Not a symbolic link, which PHP follows before it loads.
    let [library, link] = [LIBRARY, LIBRARY_DEFAULT].map(|name| folder.join("lib").join(name));
    std::fs::hard_link(library, link)?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&folder))?;
    run(Command::new("chmod").arg("755").arg(folder.join(program)))?;
    let packed = format!("{name}.tar.gz");
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(place.out.join(&packed)).args(owner).arg("-C").arg(place.out).arg(&name);
    run(&mut tar)?;
    let image = format!(
        "# docker build -t {NAME} -f {name}.Dockerfile .\n# In another image: COPY --from={NAME} / /usr/local/\n\
        FROM scratch\nCOPY {name} /\n"
    );
    let beside = [(format!("{name}.cdx.json"), bom), (format!("{name}.Dockerfile"), image.into())];
    for (name, text) in &beside {
        std::fs::write(place.out.join(name), text).with_context(|| name.clone())?;
    }
    let [bom, image] = beside.map(|(name, _)| name);
    let mut sums = String::new();
    for name in [&packed, &bom] {
        let sum = Sha256::digest(read(&place.out.join(name))?);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        sums += &format!("{sum}  {name}\n");
    }
    std::fs::write(place.out.join("SHA256SUMS"), sums).context("SHA256SUMS")?;
    Ok([&packed, &bom, &image, "SHA256SUMS"].map(|name| place.out.join(name)).into())
}

/// The crates that are compiled into the binaries, as a bill in CycloneDX's form.
fn materials(root: &Path, triple: &str) -> Result<Value> {
    let arguments = ["tree", "--locked", "--package", "libdash", "--package", "dash-cli"];
    let format = ["--edges", "normal", "--prefix", "none", "--format", "{p}\t{l}", "--target"];
    let mut cargo = Command::new("cargo");
    let said = cargo.args(arguments).args(format).arg(triple).current_dir(root).output();
    let said = said.context("starting cargo")?;
    ensure!(said.status.success(), "cargo: {}", String::from_utf8_lossy(&said.stderr));
    let lines = String::from_utf8(said.stdout)?;
    let crates: BTreeSet<(&str, &str, &str)> = lines
        .lines()
        .filter_map(|line| {
            let (package, licence) = line.split_once('\t')?;
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            // A folder stands behind the version of what is dash's own.
            Some((name, version, licence.trim_end_matches(" (*)")))
        })
        .collect();
    let component = |(name, version, licence): &(&str, &str, &str)| {
        json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            // An old way to say it.
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        })
    };
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "name": NAME,
            "version": VERSION,
            "description": SUMMARY,
            "licenses": [{ "expression": LICENCE }],
        } },
        "components": crates.iter().map(component).collect::<Vec<_>>(),
    }))
}
