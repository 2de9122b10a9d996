//! Input tables: [`Dataset`] (checked once, gaps as NaN, rows grouped by [`Pattern`]),
//! [`Ledger`] (its missing values and possible problems), [`CentralMoments`] (mergeable mean and
//! scatter), [`Sparse`] (mostly zeros), [`Timeline`] (when rows happened, where that matters), [`Points`] (rows that are
//! points of curves), [`Facts`] (what is known of a table that is gone through block by block), and [`simulate`].

mod copies;
mod dataset;
mod ledger;
mod moments;
mod pairwise;
mod pattern;
mod points;
mod rows;
pub mod simulate;
mod sparse;
mod time_axis;
mod timeline;

pub use copies::CopiedColumn;
pub use dataset::Dataset;
pub(crate) use dataset::{Cells, in_its_precision};
pub(crate) use ledger::list;
pub use ledger::{
    Duplicates, Ledger, Oddity, SuspectedCode, WildCell, may_have_wild_cells, may_have_wild_single_cells,
};
pub use moments::{CentralMoments, MatrixKind};
pub use pattern::Pattern;
pub(crate) use pattern::{Patterns, Run};
pub use points::{PointColumns, Points};
pub(crate) use rows::{COLUMN_FACTS, ColumnFacts};
pub use rows::{Facts, block_rows};
pub use simulate::Shape;
pub use sparse::Sparse;
pub use time_axis::{Moment, Steps, TimeAxis};
pub use timeline::{Sequence, Timeline};
