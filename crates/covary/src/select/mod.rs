//! How many components, and how honest the answers are (spec §8).
//!
//! The likelihood of the training data never falls when a component is added, so it cannot choose.
//!
//! | question | answer |
//! | --- | --- |
//! | complete table, how many components? | [`Criteria`]: Minka's evidence, BIC, AIC, from one spectrum |
//! | table with gaps, or a model to fill them with? | [`held_out_cells`]: hide cells, predict them, count nats |
//! | which eigenvalues exceed those of unrelated columns? | [`ParallelAnalysis`] |
//! | do 95 % intervals hold 95 % of the truth? | [`interval_coverage`] |
//! | one estimate from several imputations? | [`pool`] |

mod coverage;
mod criteria;
mod held_out;
mod parallel_analysis;
mod pooling;

pub use coverage::interval_coverage;
pub use criteria::{Chosen, Criteria, InformationCriteria, SpectrumCriteria, information_criteria};
pub use held_out::{
    ChoiceRule, HeldOut, HeldOutAt, HeldOutOptions, HeldOutRows, choose_by_held_out_cells, folds_of_cells,
    held_out_cells, hold_out_at,
};
pub use parallel_analysis::{ParallelAnalysis, ParallelSpectrum};
pub use pooling::{Pooled, pool};
