//! What a doubting statistician would ask: one binary, one module per kind of question.

mod agreement;
mod architecture;
mod calibration;
mod cca;
mod common;
mod contract;
mod dense;
mod diagnostics;
mod errors;
mod evidence;
mod factor_analysis;
mod full_covariance;
mod gibbs;
mod golden_em;
mod golden_fa;
mod golden_ppca;
mod golden_select;
mod ica;
mod incremental;
mod ledger;
mod missingness;
mod mixture;
mod model_file;
#[cfg(feature = "npy")]
mod npy;
mod placement;
mod principal;
mod properties;
mod reversible_jump;
mod scikit_learn;
mod select;
mod self_check;
mod shared_private;
mod spectral;
mod variational;
mod whole_table;
