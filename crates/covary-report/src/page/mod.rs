//! A report: one page that needs nothing else, and the same facts as data.
//!
//! [`Facts`] are asked for first, [`figures()`] drawn of the same model, and [`html`] puts both on a page:
//! no network, no file beside it. Sentences that judge ("limitations") follow from the facts alone, in
//! `doubts.rs`; layout is in `template.rs`, `page.css` and `page.js`.

mod doubts;
mod facts;
mod figures;
mod template;

pub use facts::{
    CellFacts, CheckFacts, ChoiceAt, ColumnFacts, CoverageFacts, Facts, FilledFacts, ModelFacts, NoiseFacts,
    OddRow, OddRows, SetAside, Study, Subject, TableFacts, Why,
};
pub use figures::{Figure, figures};
pub use template::html;
