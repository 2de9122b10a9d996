//! What can go wrong, as values: each names the thing, its value, the bound, and the way out.

/// `1 gap`, `2 gaps`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `1 component is too many`, `2 components are too many`.
fn too_many(n: usize, what: &str) -> String {
    format!("{} {} too many", count(n, what), if n == 1 { "is" } else { "are" })
}

/// `2 or fewer`; nothing is fewer than 0.
fn at_most(n: usize) -> String {
    if n == 0 { "0".to_owned() } else { format!("{n} or fewer") }
}

fn all_constant(columns: usize) -> String {
    if columns == 1 {
        "the only column is constant".to_owned()
    } else {
        format!("all {columns} columns are constant")
    }
}

/// Why a table, a request or a fit was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No rows or no columns.
    #[error(
        "the table has {} and {}: nothing to learn from; give at least two rows and one column",
        count(*rows, "row"),
        count(*columns, "column")
    )]
    EmptyTable {
        /// Rows given.
        rows: usize,
        /// Columns given.
        columns: usize,
    },
    /// A buffer does not match its stated shape.
    #[error("{what}: expected {expected}, got {got}")]
    WrongLength {
        /// What was counted.
        what: &'static str,
        /// The count that fits.
        expected: usize,
        /// The count that came.
        got: usize,
    },
    /// A cell is plus or minus infinity.
    #[error(
        "row {row}, column `{column}` is {value}: infinite values have no density; correct the cell or leave it empty"
    )]
    Infinite {
        /// Row, counted from 1.
        row: usize,
        /// Name of the column.
        column: String,
        /// The offending value.
        value: f64,
    },
    /// A sparse table whose rows or columns are out of order.
    #[error(
        "row {row} of the sparse table is out of order: its cells must lie within those stored, their columns must be ascending and be columns of the table; sort them and add up duplicates"
    )]
    SparseOrder {
        /// Row, counted from 1.
        row: usize,
    },
    /// A NaN in a sparse table.
    #[error(
        "row {row}, column {column} of the sparse table is NaN: a sparse table has no gaps; give a dense table, or leave the cell out if it is 0"
    )]
    SparseGap {
        /// Row, counted from 1.
        row: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// Fewer rows with an observed cell than a covariance needs.
    #[error("only {} an observed value: a covariance needs at least 2; add rows",
        if *rows == 1 { "1 row has".to_owned() } else { format!("{rows} rows have") })]
    TooFewRows {
        /// Rows with at least one observed cell.
        rows: usize,
    },
    /// Two rows of a sequence at one time.
    #[error(
        "rows {} and {} are both at time {time}: a sequence has one row at a time; give one of them another, or say which sequence each belongs to",
        rows.0, rows.1
    )]
    RepeatedTime {
        /// The rows, counted from 1.
        rows: (usize, usize),
        /// Their time.
        time: i64,
    },
    /// Far more times without a row than with one.
    #[error(
        "{} at {steps} times: nearly all of them would be without a row; count time in longer steps",
        if *rows == 1 { "1 row stands".to_owned() } else { format!("{rows} rows stand") }
    )]
    TooFewTimes {
        /// Rows given.
        rows: usize,
        /// Steps from the first to the last, over all sequences.
        steps: u64,
    },
    /// Rows that are not whole steps apart.
    #[error(
        "times are irregular: rows {} and {} are {} apart, rows {} and {} {}; round them to one step, such as months written 2020-01",
        first.0, first.1, counted(first.2, unit), second.0, second.1, counted(second.2, unit)
    )]
    IrregularTimes {
        /// Two rows, counted from 1, and how many units they are apart.
        first: (usize, usize, f64),
        /// Two others.
        second: (usize, usize, f64),
        /// The unit.
        unit: &'static str,
    },
    /// A table whose times are not those of the model.
    #[error(
        "the model has times {model}, and the table {table}: give the table times in the steps of the model"
    )]
    OtherTimes {
        /// The steps of the model.
        model: String,
        /// Those of the table.
        table: String,
    },
    /// No row follows another.
    #[error(
        "{}: nothing can be learned about how rows follow each other; check times and sequences",
        if *sequences == 1 { "the sequence has one step".to_owned() } else { format!("all {sequences} sequences have one step") }
    )]
    NothingFollows {
        /// Sequences.
        sequences: usize,
    },
    /// Two points of a curve at one time.
    #[error(
        "rows {} and {} are both of curve `{curve}` at time {time}; average them, or name the column that tells the curves apart",
        rows.0, rows.1
    )]
    RepeatedPoint {
        /// The curve.
        curve: String,
        /// The time of both.
        time: f64,
        /// The rows, counted from 1.
        rows: (usize, usize),
    },
    /// No curves to compare.
    #[error("{} with an observed point: how curves differ is learned from at least 2; check the column that tells them apart", count(*curves, "curve"))]
    TooFewCurves {
        /// Curves with a point.
        curves: usize,
    },
    /// Curves of a single point.
    #[error(
        "all {curves} curves have one observed point: how a curve goes on is learned from curves with at least 2; check the column that tells them apart"
    )]
    OnePointPerCurve {
        /// Curves with a point.
        curves: usize,
    },
    /// Points that are all at one time.
    #[error(
        "all points are at time {time}: curves are learned from at least 2 times; check the column of times"
    )]
    OneTime {
        /// The time.
        time: f64,
    },
    /// A time that a model of curves is not about.
    #[error(
        "time {time} is outside the interval of the model, {from} to {to}; leave the point out, or fit a model of a longer interval"
    )]
    OutsideInterval {
        /// The time.
        time: f64,
        /// The first time of the model.
        from: f64,
        /// The last time of the model.
        to: f64,
    },
    /// More eigenfunctions than splines.
    #[error(
        "{asked} components are too many: {basis} basis functions have at most {basis}; ask for fewer, or for more basis functions (basis_size)"
    )]
    TooManyEigenfunctions {
        /// Components requested.
        asked: usize,
        /// Basis functions.
        basis: usize,
    },
    /// A column without any observed cell.
    #[error(
        "column `{column}` has no observed value, so nothing can be learned about it; drop it or fill it first"
    )]
    EmptyColumn {
        /// Name of the column.
        column: String,
    },
    /// A column without variance where the noise family gives each column its own noise.
    #[error(
        "column `{column}` is constant: its own noise variance would be zero and the likelihood unbounded; drop the column or use isotropic noise"
    )]
    ConstantColumn {
        /// Name of the column.
        column: String,
    },
    /// Every column is constant.
    #[error(
        "{}: there is no variance to explain; check how the table was read",
        all_constant(*columns)
    )]
    AllConstant {
        /// Number of columns.
        columns: usize,
    },
    /// A column whose variance f64 cannot hold with all its digits.
    #[error(
        "column `{column}` has variance {variance:?}, outside 1e-280 to 1e280 where its digits are kept; multiply the column by a power of ten, or drop it"
    )]
    OutOfScale {
        /// Name of the column.
        column: String,
        /// Its variance; 0 where the squares are too small for f64, infinite or NaN where too large.
        variance: f64,
    },
    /// More components than the table has room for.
    #[error(
        "{}: {} and {} leave room for at most {max} plus noise; ask for {}",
        too_many(*asked, "component"),
        count(*rows, "row"),
        count(*columns, "column"),
        at_most(*max)
    )]
    TooManyComponents {
        /// Components requested.
        asked: usize,
        /// Rows with an observed cell.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Largest possible number.
        max: usize,
    },
    /// More models in a mixture than the rows can feed.
    #[error(
        "{} for a mixture of {}: each needs at least {each} of them; ask for {}",
        too_many(*asked, "model"),
        count(*rows, "row"),
        at_most(*max)
    )]
    TooManyMixtures {
        /// Models requested.
        asked: usize,
        /// Rows with an observed cell.
        rows: usize,
        /// Rows each model needs.
        each: usize,
        /// Largest possible number.
        max: usize,
    },
    /// A classifier of one class, or none.
    #[error(
        "{}: a classifier tells classes apart; give rows of two or more",
        match class { Some(class) => format!("all rows are of class `{class}`"), None => "there are no classes".to_owned() }
    )]
    OneClass {
        /// The class, if there is one.
        class: Option<String>,
    },
    /// A class whose rows could not be fitted.
    #[error("class `{class}`: {error}")]
    InClass {
        /// Name of the class.
        class: String,
        /// What was refused.
        error: Box<Error>,
    },
    /// Minka's evidence asked of a table with fewer rows than columns.
    #[error(
        "the number of components cannot be chosen by evidence from {} of {}: it needs at least as many rows as columns; give a number or a share of variance",
        count(*rows, "row"),
        count(*columns, "column")
    )]
    TooFewForEvidence {
        /// Rows with an observed cell.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// More components than the first batch of a stream has rows or columns.
    #[error(
        "{}: the first batch has {} and {}, room for at most {max}; give a larger first batch or ask for {}",
        too_many(*asked, "component"),
        count(*rows, "row"),
        count(*columns, "column"),
        at_most(*max)
    )]
    SmallFirstBatch {
        /// Components requested.
        asked: usize,
        /// Rows with an observed cell.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Largest possible number.
        max: usize,
    },
    /// Another number of components than a full covariance has.
    #[error(
        "{} requested, but the full covariance of {} has {fixed}; leave the number out, or ask for probabilistic PCA",
        if *asked == 1 { "1 component was".to_owned() } else { format!("{asked} components were") },
        count(*columns, "column")
    )]
    FixedComponents {
        /// Components requested.
        asked: usize,
        /// Columns.
        columns: usize,
        /// One less than columns.
        fixed: usize,
    },
    /// The components explain the data exactly, so the likelihood has no maximum.
    #[error(
        "{} no noise (the data have rank {rank}), so the likelihood is unbounded; ask for fewer than {}, or set a noise floor or a prior",
        if *asked == 1 { "1 component leaves".to_owned() } else { format!("{asked} components leave") },
        count(*rank, "component")
    )]
    DegenerateNoise {
        /// Components requested.
        asked: usize,
        /// Numerical rank of the centered data.
        rank: usize,
    },
    /// More components than the table has directions.
    #[error(
        "{}: the columns have rank {rank}, some being sums of others; ask for {}",
        too_many(*asked, "component"),
        at_most(*rank)
    )]
    RankBelow {
        /// Components requested.
        asked: usize,
        /// Numerical rank of the centered table.
        rank: usize,
    },
    /// A view without columns.
    #[error("view {view} has no columns; give it at least one, or leave the view out")]
    EmptyView {
        /// The view, counted from 1.
        view: usize,
    },
    /// A view without variance.
    #[error(
        "{}: there is no variance to explain; leave the view out, or check how it was read",
        if *columns == 1 { format!("the only column of view {view} is constant") } else { format!("all {columns} columns of view {view} are constant") }
    )]
    ConstantView {
        /// The view, counted from 1.
        view: usize,
        /// Its columns.
        columns: usize,
    },
    /// A view whose columns never vary.
    #[error("no column of view `{view}` varies, so nothing can be learned about it; leave the view out")]
    FlatView {
        /// Its name.
        view: String,
    },
    /// A column that two views claim.
    #[error("column `{column}` is in view `{first}` and in view `{second}`; a column belongs to one view")]
    ColumnInTwoViews {
        /// The column.
        column: String,
        /// The first view.
        first: String,
        /// The other.
        second: String,
    },
    /// Too many or too few views.
    #[error("{family} describes {needed}, and there are {got}")]
    NumberOfViews {
        /// The requested model.
        family: &'static str,
        /// What it takes.
        needed: &'static str,
        /// Views given.
        got: usize,
    },
    /// A view whose covariance has no inverse.
    #[error(
        "view {view} has {} of rank {rank} in {}, so its covariance has no inverse and canonical correlations are not defined; give a ridge, such as 0.1, or a rank of at most {rank}",
        count(*columns, "column"),
        count(*rows, "row")
    )]
    SingularView {
        /// The view, counted from 1.
        view: usize,
        /// Its numerical rank.
        rank: usize,
        /// Its columns.
        columns: usize,
        /// Rows.
        rows: usize,
    },
    /// Gaps where sources are sought.
    #[error(
        "{method} needs a complete table and this one has {}: sources have no Gaussian density to fill them by; drop the rows with gaps, impute the table first, or fit noisy sources, which leave gaps out",
        count(*gaps, "gap")
    )]
    GapsInSources {
        /// What was requested.
        method: &'static str,
        /// Missing cells.
        gaps: usize,
    },
    /// A factor model with more parameters than the covariance has entries.
    #[error(
        "{} cannot be identified from {} (degrees of freedom {degrees_of_freedom}); {}",
        count(*asked, "factor"),
        count(*columns, "column"),
        if *max == 0 { "none can".to_owned() } else { format!("at most {max} can") }
    )]
    NotIdentified {
        /// Factors requested.
        asked: usize,
        /// Columns.
        columns: usize,
        /// `((d − q)² − (d + q)) / 2`.
        degrees_of_freedom: i64,
        /// Largest number of factors with non-negative degrees of freedom.
        max: usize,
    },
    /// A method that needs a complete table met a gap.
    #[error(
        "{method} needs a complete table and this one has {}; use `em`, which is exact with gaps",
        count(*gaps, "gap")
    )]
    HasGaps {
        /// The requested method.
        method: &'static str,
        /// Missing cells.
        gaps: usize,
    },
    /// A method that cannot fit what was asked.
    #[error("{method} does not fit {what}; use {instead}")]
    Unsupported {
        /// The requested method.
        method: &'static str,
        /// What it cannot do.
        what: &'static str,
        /// What can.
        instead: &'static str,
    },
    /// A number out of its range.
    #[error("{name} is {value}; it must be {bound}")]
    OutOfRange {
        /// Name of the option.
        name: &'static str,
        /// Value given.
        value: f64,
        /// The range in words.
        bound: &'static str,
    },
    /// Something asked for that the family does not have.
    #[error("{argument} goes with {suits}, not with {family}")]
    NotForFamily {
        /// What was asked for.
        argument: Argument,
        /// The family asked for.
        family: &'static str,
        /// The families that have it.
        suits: String,
    },
    /// A mixture where one model is needed.
    #[error("{what}, where one model is needed")]
    NotOneModel {
        /// What was given.
        what: &'static str,
    },
    /// Something else where a mixture is needed.
    #[error("{what}, where a mixture is needed")]
    NotAMixture {
        /// What was given.
        what: &'static str,
    },
    /// Something else where independent components are needed.
    #[error("{what}, where independent components are needed")]
    NoSources {
        /// What was given.
        what: &'static str,
    },
    /// Something else where a model of rows in time is needed.
    #[error("{what}, where a dynamic factor model is needed: its rows follow each other")]
    NotInTime {
        /// What was given.
        what: &'static str,
    },
    /// Something else where a model of curves is needed.
    #[error("{what}, where a functional PCA is needed: a model of curves")]
    NotCurves {
        /// What was given.
        what: &'static str,
    },
    /// Independent components where a density of rows is needed.
    #[error("independent components are not a density of rows{}", if *noisy { "" } else { ", and only noisy ones impute missing values" })]
    NoDensity {
        /// Whether they are behind noise, so that they fill gaps.
        noisy: bool,
    },
    /// A column of the model that the table does not have.
    #[error("there is no column `{column}`, which the model has")]
    NoColumn {
        /// Its name.
        column: String,
    },
    /// A column whose filled cells are asked for, and the model fills none.
    #[error("`{column}` is no column that the model fills; give one of {known}")]
    ColumnNotFilled {
        /// Its name.
        column: String,
        /// The columns there are.
        known: String,
    },
    /// A family that does not exist.
    #[error("there is no model `{name}`; there are {known}")]
    NoSuchFamily {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A method that does not exist.
    #[error("there is no method `{name}`; there are {known}")]
    NoSuchMethod {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A method that leads elsewhere.
    #[error("method `{method}` does not lead to model `{family}`; give one of {known}")]
    WrongMethod {
        /// The requested method.
        method: &'static str,
        /// The requested model.
        family: &'static str,
        /// The methods that lead to it.
        known: String,
    },
    /// An option the method does not have.
    #[error("{method} has no option `{option}`; it has {known}")]
    NoSuchOption {
        /// The method.
        method: &'static str,
        /// The name given.
        option: String,
        /// Its options.
        known: String,
    },
    /// Text that is not a value of an option.
    #[error("option `{option}` is `{value}`; it must be {expected}")]
    BadOption {
        /// Name of the option.
        option: &'static str,
        /// The text given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A matrix that should be a covariance is not.
    #[error("{what} is not a covariance matrix: {why}")]
    NotCovariance {
        /// What was given.
        what: &'static str,
        /// The property it lacks.
        why: String,
    },
    /// A matrix where a table was expected.
    #[error(
        "the table is symmetric{}, as a {kind} matrix is and no table of observations: say that it is one, and from how many rows",
        if *kind == "correlation" { " with a diagonal of ones" } else { "" }
    )]
    LooksLikeMatrix {
        /// `correlation` or `covariance`.
        kind: &'static str,
    },
    /// A question that only rows can answer, of a model that was learned from a matrix.
    #[error("{what} cannot be had from a {kind} matrix, which has no rows and no means: {instead}")]
    NoRows {
        /// What was asked for.
        what: &'static str,
        /// `correlation` or `covariance`.
        kind: &'static str,
        /// What can be done.
        instead: &'static str,
    },
    /// Sums of a block that never came back.
    #[error(
        "block {block} of {n_blocks} (counted from 0) is missing from the sums of this pass; let the engine sum it again"
    )]
    LostBlock {
        /// The first that is missing.
        block: u64,
        /// How many there are.
        n_blocks: u64,
    },
    /// Sums of a block that came twice.
    #[error("block {block} (counted from 0) is in the sums of this pass twice; take each block once")]
    DoubledBlock {
        /// Which one.
        block: u64,
    },
    /// Sums of a block that the table does not have.
    #[error(
        "block {block} (counted from 0) is beyond the blocks of the table, or not one that blocks are joined by; number blocks from 0 on without a gap"
    )]
    UnknownBlock {
        /// Which one.
        block: u64,
    },
    /// Sums that cannot be added to others.
    #[error(
        "sums of {what} `{found}` cannot be joined with those of `{expected}`; {}",
        same_everywhere(what)
    )]
    ForeignState {
        /// What differs: pass, version or instruction set.
        what: &'static str,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Something that needs the table in memory.
    #[error("{what} needs the table in memory; use {instead}, or allow more memory")]
    NotInMemory {
        /// What needs it.
        what: String,
        /// What does not.
        instead: &'static str,
    },
    /// Something that cannot be learned from rows that come once.
    #[error(
        "{what} cannot be learned from rows that come once; use model `pca`, `ppca` or `fa` by method `em`, write the rows to a file, or allow more memory"
    )]
    NotOfStream {
        /// What it is.
        what: String,
    },
    /// Rows that could not be gone through again.
    #[error("the rows could not be read: {why}")]
    Unreadable {
        /// What was said.
        why: String,
        /// What can be asked for differently.
        remedies: Vec<Remedy>,
    },
    /// Sums of a pass that could not be kept.
    #[error("the checkpoint could not be written: {why}")]
    Unkept {
        /// What was said.
        why: String,
    },
    /// Bytes that are not what an [`Incremental`](crate::infer::Incremental) or a pass over blocks of rows wrote.
    #[error("the saved state is damaged: {why}; save it again, or start again")]
    DamagedState {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The number of columns differs from the model's.
    #[error(
        "the model has {} and the table {got}; give the columns the model was fitted to, in their order",
        count(*expected, "column")
    )]
    ColumnCount {
        /// Columns of the model.
        expected: usize,
        /// Columns of the table.
        got: usize,
    },
    /// Fewer cells to hide than folds to hide them in.
    #[error(
        "only {} can be hidden without emptying a row or starving a column, too few for {}; ask for fewer folds or components",
        count(*cells, "cell"),
        count(*folds, "fold")
    )]
    TooFewToHide {
        /// Cells that can be hidden.
        cells: usize,
        /// Folds requested.
        folds: usize,
    },
    /// A visible cell that the full table does not hold.
    #[error(
        "row {row}, column `{column}` is visible but not the same in the full table; hide cells of that table, do not change them"
    )]
    NotInFullTable {
        /// Row, counted from 1.
        row: usize,
        /// Name of the column.
        column: String,
    },
    /// Filled cells without a known truth.
    #[error("no filled cell has a known value to compare with; give the table before its cells were hidden")]
    NothingToCompare,
    /// Whoever watched the work asked it to stop.
    #[error("interrupted before the answer was known; run it again and let it finish")]
    Interrupted,
    /// A model of a mixture has no variance left in some direction.
    #[error(
        "the covariance of one model of the mixture is singular: too few different rows belong to it; ask for fewer models, or add more to the variances (`reg_covar`, `ridge`)"
    )]
    CollapsedModel,
    /// A decomposition did not converge; only reachable with numbers near the limits of f64.
    #[error("{what} did not converge: rescale the data to moderate numbers")]
    Numerical {
        /// The decomposition.
        what: &'static str,
    },
}

impl Error {
    /// What the caller can ask for differently, where the message does not say it by a name that every interface has.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::GapsInSources { .. } => vec![Remedy::Method("noisy"), Remedy::Impute],
            Self::EmptyColumn { column } => vec![Remedy::Exclude(column.clone())],
            Self::LooksLikeMatrix { kind } => vec![Remedy::Matrix(kind)],
            Self::InClass { error, .. } => error.remedies(),
            Self::Unreadable { remedies, .. } => remedies.clone(),
            _ => Vec::new(),
        }
    }
}

/// What a caller can ask for differently so that a request is no longer refused. Messages say it in plain words; as
/// data, each interface can add the name it has for it: a flag, an argument, a class, a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// The format of the file: this one, where its bytes show which.
    Format(Option<&'static str>),
    /// The separator of the cells: this one, where the text shows which.
    Delimiter(Option<String>),
    /// Decimals that are written with a comma.
    DecimalComma,
    /// Decimals that are written with a point.
    DecimalPoint,
    /// Whether the first line names the columns.
    Header(bool),
    /// How many lines precede the table.
    Skip,
    /// The encoding of the text.
    Encoding,
    /// The name or number of one worksheet of several.
    Sheet,
    /// These columns as labels of the rows.
    Id(Vec<String>),
    /// This text as one that means a gap.
    Gaps(String),
    /// A table without this column.
    Exclude(String),
    /// A choice of the columns.
    Columns,
    /// The name of one array of a file that has several.
    Array,
    /// A higher limit on memory.
    MaxMemory,
    /// The same table, its gaps imputed first.
    Impute,
    /// The method of this name.
    Method(&'static str),
    /// A matrix of this kind in place of a table.
    Matrix(&'static str),
}

/// A number of units.
fn counted(n: f64, unit: &str) -> String {
    let n = (n * 1e6).round() / 1e6;
    format!("{n} {unit}{}", if n == 1.0 { "" } else { "s" })
}

/// A part of a request, which each interface calls by its own name: a flag, a keyword, a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// The number of models of a mixture.
    Mixtures,
    /// Views of the columns.
    Views,
    /// A model for each class.
    Classes,
    /// A rotation of the loadings.
    Rotation,
    /// Whether columns get unit variance.
    Standardize,
    /// A share of the variance in place of a number of components.
    Share,
    /// A correlation or covariance matrix in place of a table.
    Matrix,
}

impl std::fmt::Display for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mixtures => "a number of models",
            Self::Views => "a division of the columns into views",
            Self::Classes => "a model for each class",
            Self::Rotation => "a rotation",
            Self::Standardize => "a choice of standardization",
            Self::Share => "a share of the variance",
            Self::Matrix => "a correlation or covariance matrix",
        })
    }
}

/// What to do about sums that differ in this.
fn same_everywhere(what: &str) -> &'static str {
    match what {
        "pass" => "join sums of one pass only",
        "version" => "install one version of covary on all machines",
        _ => "use machines of one kind, whose sums have the same bits",
    }
}
