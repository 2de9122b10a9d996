//! What a doubting statistician would ask: one binary, one module per kind of question.

mod architecture;
mod common;
mod golden_em;
mod factor_analysis;
mod golden_fa;
mod golden_ppca;
