//! The packages, installed and used as their users do it: one program, as linking one for each
//! language takes longer.

mod common;
mod deb;
mod go;
mod java;
mod node;
mod php;
mod python;
mod python_frameworks;
mod ruby;
mod rust;
mod systems;
mod tarball;
