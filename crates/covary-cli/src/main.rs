//! The command `covary`.
fn main() {}
