//! How the extension is linked. It is never unloaded: it leaves handlers with the C library (for
//! forks, for the end of the process), and threads. SQLite loads it for good; another host that
//! calls `dlclose` must not end with a jump into memory that is gone.

fn main() {
    println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
