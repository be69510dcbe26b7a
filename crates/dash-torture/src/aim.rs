//! What can be tried by name, ring by ring, and which rings a name is about. A name that is about
//! nothing is an error before anything runs: a run of nothing finds no failure either.

use crate::{Options, Ring, faults, fs, kill, sim};

impl Ring {
    /// All that it tries, named as in [`Summary::engine`](crate::Summary::engine).
    pub fn targets(self) -> Vec<String> {
        match self {
            Self::Sim => sim::targets(),
            Self::Fs => fs::targets(),
            Self::Faults => faults::targets(),
            Self::Kill => kill::targets(),
        }
    }
}

/// The rings that try what is wanted, out of all or of the one that was named.
///
/// # Errors
///
/// If none does; the text says what there is.
pub fn rings(options: &Options, named: Option<Ring>) -> Result<Vec<Ring>, String> {
    let asked = named.map_or(Ring::ALL.to_vec(), |ring| vec![ring]);
    let has = |ring: &Ring| ring.targets().iter().any(|target| options.wants(target));
    let found: Vec<Ring> = asked.iter().copied().filter(has).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let lists: String = asked.into_iter().map(list).collect();
    let wanted = options.engine.as_deref().unwrap_or_default();
    Err(format!("no engine is called {wanted}; there are{lists}"))
}

/// A line for a ring: its engines and variants, and what may follow any of these.
fn list(ring: Ring) -> String {
    let (mut variants, mut ends) = (Vec::new(), Vec::new());
    for target in ring.targets() {
        let mut parts = target.splitn(3, '/');
        let (engine, variant) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let end = parts.next().map(|end| format!("/{end}"));
        variants.push(format!("{engine}/{variant}"));
        ends.extend(end);
    }
    for names in [&mut variants, &mut ends] {
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
    }
    let ends = match ends.is_empty() {
        true => String::new(),
        false => format!("; each also with {}", ends.join(", ")),
    };
    format!("\n  ring {}: {}{ends}", ring.name(), variants.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(engine: &str, named: Option<Ring>) -> Result<Vec<Ring>, String> {
        let options = Options {
            seed: 1,
            time: std::time::Duration::ZERO,
            folder: None,
            library: std::path::PathBuf::new(),
            engine: Some(engine.to_owned()),
            case: None,
        };
        rings(&options, named)
    }

    #[test]
    fn a_name_aims_at_the_rings_that_know_it() {
        assert_eq!(of("shadow", None), Ok(Ring::ALL.to_vec()));
        assert_eq!(of("shadow/single", None), Ok(vec![Ring::Sim, Ring::Fs, Ring::Kill]));
        assert_eq!(of("shadow/single/512", None), Ok(vec![Ring::Sim]));
        assert_eq!(of("shadow/single/xfs", None), Ok(vec![Ring::Fs]));
        assert_eq!(of("stock/wal-full", None), Ok(vec![Ring::Fs]));
        assert_eq!(of("shadow/memory", Some(Ring::Faults)), Ok(vec![Ring::Faults]));
        for variant in ["wal/log", "wal/alone"] {
            assert_eq!(of(variant, None), Ok(vec![Ring::Sim, Ring::Fs, Ring::Kill]));
        }
        assert_eq!(of("wal/elsewhere", None), Ok(vec![Ring::Sim, Ring::Fs]));
    }

    #[test]
    fn a_name_of_nothing_is_an_error_that_names_what_there_is() {
        for engine in ["bogus", "shadow/singel", "shadow/single/513", "", "shad"] {
            for named in
                [None, Some(Ring::Sim), Some(Ring::Fs), Some(Ring::Faults), Some(Ring::Kill)]
            {
                let error = of(engine, named).unwrap_err();
                assert!(error.contains("shadow/"), "{error}");
            }
        }
        let error = of("stock", Some(Ring::Sim)).unwrap_err();
        assert!(error.ends_with(
            "ring sim: shadow/single, shadow/paper, shadow/exclusive, shadow/links, shadow/renames, \
             wal/log, wal/barrier, wal/elsewhere, wal/memory, wal/alone, wal/beside, wal/checkpointed, toy/copy; each also with /512, \
             /4096, /65536"
        ));
    }
}
