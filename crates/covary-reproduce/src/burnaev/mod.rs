//! Burnaev: Models with latent variables, EM algorithm. Slides of Skoltech's course on Bayesian machine
//! learning, without a date. Their figures print no numbers; what they show is claimed in words.

pub(crate) mod digits;
pub(crate) mod divergences;
pub(crate) mod missing;
