//! The engines that the rings try: one line each. A new engine is a line here, and a file or
//! folder beside this one that implements [`Engine`].

use crate::engine::Engine;

/// The table.
pub const ENGINES: &[&dyn Engine] = &[
    &crate::shadow::Shadow,
    &crate::wal::Wal,
    #[cfg(test)]
    &crate::toy::Toy::SOUND,
];

/// The engine of this name.
pub fn named(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::commit::Kept;
    use crate::sim::subject::{Setup, Sizes};

    /// What the programs take for granted of a commit's steps.
    #[test]
    fn what_returned_survives_and_what_survives_is_not_undone() {
        let of_their_own = |engine: &&&dyn Engine| engine.subject().sessions().is_some();
        assert!(ENGINES.iter().filter(of_their_own).count() > 1);
        for engine in ENGINES.iter().filter(of_their_own) {
            for variant in engine.variants() {
                let setup =
                    Setup { variant: variant.name, page: 512, sizes: Sizes::Usual, secure: false };
                let steps = engine.subject().commit_steps(&setup);
                let name = format!("{}/{}", engine.name(), variant.name);
                for step in steps {
                    let always = [step.after_kill, step.after_power_loss].contains(&Kept::Always);
                    assert!(!(always && step.can_be_undone), "{name}: {}", step.name);
                }
                let last = steps.last().expect("a commit takes a step");
                assert_eq!(last.after_kill, Kept::Always, "{name}");
                assert_eq!(last.after_power_loss, Kept::Always, "{name}");
                let undoable: Vec<_> = steps.iter().map(|step| step.can_be_undone).collect();
                assert!(undoable.is_sorted_by(|a, b| a >= b), "{name}: {undoable:?}");
            }
        }
    }

    #[test]
    fn no_two_engines_and_no_two_variants_have_one_name() {
        let names = || ENGINES.iter().map(|engine| engine.name());
        for engine in ENGINES {
            assert_eq!(names().filter(|name| *name == engine.name()).count(), 1);
            let mut variants: Vec<_> = engine.variants().iter().map(|v| v.name).collect();
            assert!(!variants.contains(&crate::engine::GUESTS));
            variants.sort_unstable();
            variants.dedup();
            assert_eq!(variants.len(), engine.variants().len());
        }
    }
}
