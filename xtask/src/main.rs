//! `cargo xtask test`: everything a contribution must pass, in the order that fails fastest.
fn main() {}
