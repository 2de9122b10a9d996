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
//! | how good will the filled cells of this table be? | [`self_check`]: hide some, refit, compare |
//! | do gaps come at random? | [`gap_trends`]: gaps that follow the first component |
//! | one estimate from several imputations? | [`pool`] |

mod coverage;
mod criteria;
mod held_out;
mod missingness;
mod parallel_analysis;
mod pooling;
mod self_check;

pub use coverage::interval_coverage;
pub use criteria::{Chosen, Criteria, InformationCriteria, SpectrumCriteria, information_criteria};
pub use held_out::{
    ChoiceRule, HeldOut, HeldOutAt, HeldOutOptions, HeldOutRows, choose_by_held_out_cells, folds_of_cells,
    held_out_cells, held_out_cells_observed, hold_out_at,
};
pub use missingness::{GapTrend, gap_trends};
pub use parallel_analysis::{ParallelAnalysis, ParallelSpectrum};
pub use pooling::{Pooled, pool};
pub use self_check::{Coverage, SelfCheck, SelfCheckOptions, check_model, self_check};
