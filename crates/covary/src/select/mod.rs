//! How many components, and how well calibrated the answers are [M 1.8].
//!
//! The likelihood of the training data never decreases when a component is added, so it cannot choose.
//!
//! | question | answer |
//! | --- | --- |
//! | how many components, by every criterion? | [`Compare`]: one table and a sentence |
//! | complete table, how many components? | [`Criteria`]: Minka's evidence, BIC, AIC, from one spectrum |
//! | and the fewest that a Bayesian would keep? | [`EmpiricalVb`]: variational Bayes in closed form |
//! | … and how certain is that? | [`ReversibleJump`]: p(q \| data), by sampling |
//! | how many components predict best, in the time of a fit? | [`PilotSearch`]: hide cells, predict them by truncations of one model |
//! | … the same for any method? | [`held_out_cells`]: fit every number again, count nats |
//! | which eigenvalues exceed those of unrelated columns? | [`ParallelAnalysis`] |
//! | how many models in a mixture? | [`mixture_sizes`]: BIC and held-out rows; [`own_components`]: of each model |
//! | do 95 % intervals cover 95 % of the true values? | [`interval_coverage`] |
//! | how good will the filled cells of this table be? | [`self_check`]: hide some, refit, compare |
//! | do gaps come at random? | [`gap_trends`]: gaps that follow the first component |
//! | one estimate from several imputations? | [`pool`] |

mod comparison;
mod coverage;
mod criteria;
mod empirical_vb;
mod gavish_donoho;
mod held_out;
mod missingness;
mod mixtures;
mod own_components;
mod parallel_analysis;
mod pilot;
mod pooling;
mod reversible_jump;
mod self_check;

pub use comparison::{Compare, Comparison, ComparisonAt, Criterion};
pub use coverage::interval_coverage;
pub use criteria::{Chosen, Criteria, InformationCriteria, SpectrumCriteria, information_criteria};
pub use empirical_vb::EmpiricalVb;
pub use gavish_donoho::gavish_donoho;
pub(crate) use held_out::summarize;
pub use held_out::{
    ChoiceRule, HeldOut, HeldOutAt, HeldOutOptions, HeldOutRows, Purpose, Score, choose_by_held_out_cells,
    folds_of_cells, held_out_cells, held_out_cells_observed, held_out_cells_up_to, hold_out_at,
};
pub use missingness::{GapTests, GapTrend, gap_tests, gap_trends};
pub use mixtures::{MixtureComparison, MixtureSize, UnseenRows, mixture_sizes, own_components};
pub use own_components::OwnComponents;
pub use parallel_analysis::{ParallelAnalysis, ParallelSpectrum};
pub use pilot::PilotSearch;
pub use pooling::{Pooled, pool};
pub use reversible_jump::{ComponentPosterior, MixingDoubt, ReversibleJump};
pub(crate) use self_check::compare;
pub use self_check::{
    CheckedCell, Coverage, SelfCheck, SelfCheckOptions, self_check, self_check_by, self_check_by_cell,
};
