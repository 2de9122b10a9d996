//! Mixtures of factor analyzers.

use super::{Entry, MIXTURE, fa};

pub(super) const ENTRY: Entry = Entry {
    name: "mfa",
    words: "mixture of factor analyzers",
    summary: "A mixture of factor analyzers: groups of rows, each with its own factors and noise of every column.",
    spec: fa::ENTRY.spec,
    ..MIXTURE
};
