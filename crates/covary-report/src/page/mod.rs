//! A report: one page that needs nothing else, and the same facts as data.
//!
//! [`Facts`] are asked for first, [`figures()`] drawn of the same model, and [`html`] puts both on a page:
//! no network, no file beside it. Sentences that judge ("limitations") follow from the facts alone, in
//! `doubts.rs`; layout is in `template.rs`, `page.css` and `page.js`.
//!
//! `cmd/report.rs` reads, fits and checks as `impute` does and hands the results to `page::Facts::of`, which only asks the
//! library. Sentences that judge follow from the facts (`page/doubts.rs`), so that `--json` has them too. `page/figures.rs`
//! draws each figure light and dark; where the two differ in colors alone the page holds one drawing whose colors are CSS
//! variables (`Colors::joined`). Marks carry a `<title>` and the `data-series` of their legend entry: `page.js` makes tips
//! and switches of them, and an SVG by itself has tips in any browser. A policy in the page's head forbids to load anything.

mod card;
mod data;
mod doubts;
mod factors;
mod facts;
mod figures;
mod structure;
mod template;
mod time;
mod tipping;

pub use card::card;
pub use factors::{FitFacts, LoadingFacts, MatrixFacts, MatrixStudy};
pub use facts::{
    CellFacts, CheckFacts, ChoiceAt, ColumnFacts, CoverageFacts, Facts, FilledFacts, ModelFacts, NoiseFacts,
    OddRow, OddRows, SetAside, Study, Subject, TableFacts, Why, groups, row_names,
};
pub use figures::{Figure, figures, figures_of_matrix};
pub use structure::{
    CurvesFacts, GroupColumn, GroupFacts, GroupsFacts, SizeFacts, SourceFacts, SparseFacts, StructureFacts,
    ViewFacts, ViewsFacts,
};
pub use template::html;
pub use time::{AheadFacts, RootFacts, SurpriseFacts, SurprisingRow, TimeFacts, TriedFacts};
pub use tipping::{TippingFacts, TippingPointFacts};
