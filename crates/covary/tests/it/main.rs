//! What a doubting statistician would ask: one binary, one module per kind of question.

mod calibration;
mod common;
mod golden_em;
mod golden_ppca;
mod golden_select;
mod select;
