//! Named ways to break a protocol, for the test of the tests: each must be caught.
//!
//! Without the cargo feature `mutations` of the crate that names them, which only unpublished
//! packages have, nothing is ever broken, and the compiler leaves the ways out.

/// Names the ways to break a crate, each with what is broken. A crate that stands before them has
/// ways of its own, which are broken by the same names.
#[macro_export]
macro_rules! mutations {
    ($(=> $below:ident;)? $($name:ident $(= $what:literal)?,)*) => {
        /// A way to break the protocol.
        #[allow(missing_docs, reason = "what some of them break is told where they are caught")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Mutation {
            $($(#[doc = $what])? $name,)*
        }

        #[cfg(feature = "mutations")]
        pub use active::{hits, set, set_named};

        #[cfg(feature = "mutations")]
        mod active {
            use super::Mutation;
            use std::cell::Cell;

            thread_local! {
                static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
                static HITS: Cell<u64> = const { Cell::new(0) };
            }

            impl Mutation {
                /// All of them, with what is broken.
                pub const ALL: &[(Self, &str)] = &[$((Self::$name, concat!($($what)?)),)*];
            }

            /// Breaks the protocol in this thread from now on; `None` mends it.
            pub fn set(mutation: Option<Mutation>) {
                if mutation.is_some() {
                    HITS.set(0);
                }
                ACTIVE.set(mutation);
                $($below::mutation::set_named(mutation.map(|it| format!("{it:?}")).as_deref());)?
            }

            /// Breaks what has this name, if anything here has.
            pub fn set_named(name: Option<&str>) {
                if name.is_some() {
                    HITS.set(0);
                }
                let mut all = Mutation::ALL.iter().map(|(mutation, _)| *mutation);
                set(all.find(|it| name == Some(&*format!("{it:?}"))));
            }

            /// Whether the protocol is to be broken so.
            pub(crate) fn broken(mutation: Mutation) -> bool {
                let broken = ACTIVE.get() == Some(mutation);
                HITS.set(HITS.get() + u64::from(broken));
                broken
            }

            /// How often this thread came to a place that was broken, since the last mutation was
            /// set.
            pub fn hits() -> u64 {
                HITS.get() $(+ $below::mutation::hits())?
            }
        }

        #[cfg(feature = "mutations")]
        pub(crate) use active::broken;

        /// Never.
        #[cfg(not(feature = "mutations"))]
        pub(crate) const fn broken(_: Mutation) -> bool {
            false
        }
    };
}
