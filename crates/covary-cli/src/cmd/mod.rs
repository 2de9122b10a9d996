//! The verbs, one file each: flags in, calls of the library, words out.

pub(crate) mod impute;
