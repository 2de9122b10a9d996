use crate::console::count;
use covary::family::View;
use covary::{Argument, Error, Remedy};
use covary_report::Remedy as FigureRemedy;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Why a verb ended without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The call cannot mean anything: exit 2.
    Call(String),
    /// The call was right and the work failed: exit 1.
    Work {
        /// The file or step it is about.
        about: String,
        /// What happened.
        why: String,
    },
    /// The table can be read and not be modeled: exit 1.
    Unfit {
        /// The table.
        about: String,
        /// Why not.
        why: String,
    },
    /// Ctrl-C came before anything was finished.
    Interrupted,
}

impl Failure {
    /// Exit status after Ctrl-C, as shells count it.
    pub(crate) const INTERRUPTED: u8 = 130;

    pub(crate) fn work(about: &str, why: impl Display) -> Self {
        Self::Work { about: about.to_owned(), why: why.to_string() }
    }

    /// What the library refused to do with a table.
    pub(crate) fn of_table(name: &str, why: Error) -> Self {
        match why {
            Error::Interrupted => Self::Interrupted,
            // The call asks for what no such table has.
            why @ (Error::TooManyComponents { .. }
            | Error::FixedComponents { .. }
            | Error::OutOfRange { .. }) => Self::work(name, why),
            why => Self::unfit(name, with_flags(&why, why.remedies().iter().map(flags))),
        }
    }

    /// What the library refused of a request, its parts by their flags and its views by their names.
    pub(crate) fn of_request(table: &str, error: Error, views: &[View]) -> Self {
        let name =
            |view: usize| views.get(view - 1).map_or_else(|| view.to_string(), |v| format!("`{}`", v.name));
        match error {
            Error::NoSuchMethod { name, known } => {
                Self::Call(format!("--inference `{name}` is not known; give one of {known}"))
            }
            Error::WrongMethod { method, family, known } => Self::Call(format!(
                "--inference `{method}` does not lead to --model {family}; give one of {known}"
            )),
            error @ (Error::NoSuchOption { .. } | Error::BadOption { .. }) => {
                Self::Call(format!("--option: {error}"))
            }
            Error::NotForFamily { argument, family, suits } => {
                Self::Call(format!("{} goes with --model {suits}, not with {family}", flag(argument)))
            }
            Error::NumberOfViews { family, needed, .. } => {
                Self::Call(format!("--model {family} relates {needed}; name each: --view NAME=COLUMNS"))
            }
            Error::SingularView { view, rank, columns, rows } => Self::work(
                table,
                format!(
                    "view {} has {} of rank {rank} in {}, so its covariance has no inverse and canonical correlations are not defined; leave columns out, or hold it up by a ridge, which needs a complete table: --option ridge=0.1",
                    name(view),
                    count(columns, "column"),
                    count(rows, "row")
                ),
            ),
            Error::ConstantView { view, columns: 1 } => Self::work(
                table,
                format!("the only column of view {} is constant; leave the view out", name(view)),
            ),
            Error::ConstantView { view, columns } => Self::work(
                table,
                format!("all {columns} columns of view {} are constant; leave the view out", name(view)),
            ),
            other => Self::of_table(table, other),
        }
    }

    /// What a model refused to answer, in the words of the verbs.
    pub(crate) fn of_model(model: &str, error: Error) -> Self {
        match error {
            Error::NotOneModel { what } => Self::work(
                model,
                format!(
                    "holds {what}, and this asks for one model; score, sample, transform, impute and inspect take it"
                ),
            ),
            Error::NoDensity { noisy } => {
                let impute = if noisy { "impute, " } else { "" };
                Self::work(
                    model,
                    format!(
                        "holds independent components, which are not a density of rows; transform, reconstruct, {impute}inspect and plot --kind sources take it, and what is fitted by --model ppca or fa has a density"
                    ),
                )
            }
            Error::NotAMixture { what } => Self::work(
                model,
                format!("holds {what}, and --kind mixture asks for a mixture: covary fit DATA --model mppca"),
            ),
            Error::NotInTime { what } => Self::work(
                model,
                format!(
                    "holds {what}, whose rows do not follow each other; `covary fit --model dfm --time COLUMN` learns from rows in time"
                ),
            ),
            Error::NotCurves { what } => Self::work(
                model,
                format!(
                    "holds {what}, no curves; `covary fit --model fpca --curve COLUMN --time COLUMN --value COLUMN` learns from their points"
                ),
            ),
            Error::NoSources { .. } => {
                Self::work(model, "holds no independent components; `covary fit --model ica` finds them")
            }
            other => Self::of_table(model, other),
        }
    }

    fn unfit(about: &str, why: impl Display) -> Self {
        Self::Unfit { about: about.to_owned(), why: why.to_string() }
    }

    /// What could not be read or written.
    pub(crate) fn of_file(name: &str, error: &covary::io::Error) -> Self {
        use covary::io::Error::{ModelAsTable, NoNumericColumn, NoTypedNumbers, NothingChosen};
        let why = with_flags(error, error.remedies().iter().map(flags));
        match error {
            NoNumericColumn { .. } | NoTypedNumbers { .. } | NothingChosen => Self::unfit(name, why),
            ModelAsTable => Self::work(
                name,
                "is a model that `covary fit` wrote, and a table belongs here; `covary inspect` shows a model, transform, score and plot take it before a table, and report takes the table it was learned from, or the matrix (--matrix correlation --rows N --components Q)",
            ),
            _ => Self::work(name, why),
        }
    }

    /// Why there is no figure, unless the library refused, which is said of its table or model.
    pub(crate) fn of_figure(name: &str, error: &covary_report::Error) -> Self {
        Self::work(name, with_flags(error, error.remedies().iter().map(figure_flags)))
    }

    /// A word for a format that is none.
    pub(crate) fn of_format(flag: &str, error: &covary::io::Error) -> Self {
        Self::Call(format!("{flag}: {error}"))
    }

    /// What is wrong, and what about.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Call(why) => why.clone(),
            Self::Work { about, why } | Self::Unfit { about, why } => format!("{about}: {why}"),
            Self::Interrupted => "interrupted; nothing was written".to_owned(),
        }
    }

    /// Says it on standard error; a closed standard error changes nothing.
    pub(crate) fn report(&self) -> ExitCode {
        let mut err = std::io::stderr().lock();
        let help = if matches!(self, Self::Call(_)) { "\n\nFor more information, try '--help'." } else { "" };
        let words = self.words() + help;
        let _ = writeln!(err, "covary: {}", crate::console::harmless(&words));
        ExitCode::from(match self {
            Self::Call(_) => 2,
            Self::Work { .. } | Self::Unfit { .. } => 1,
            Self::Interrupted => Self::INTERRUPTED,
        })
    }
}

/// A note and the flag that decides otherwise.
pub(crate) fn note_words(note: &covary::io::Note) -> String {
    with_flags(note, note.remedies().iter().map(flags))
}

/// A message and the flags that follow its advice.
fn with_flags(error: &dyn Display, flags: impl Iterator<Item = String>) -> String {
    let flags: Vec<String> = flags.filter(|flag| !flag.is_empty()).collect();
    if flags.is_empty() { error.to_string() } else { format!("{error} ({})", flags.join(", ")) }
}

/// What the command calls a remedy of the library.
fn flags(remedy: &Remedy) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    match remedy {
        Remedy::Format(word) => format!("--format {}", word.unwrap_or("FORMAT")),
        Remedy::Delimiter(Some(delimiter)) => format!("--delimiter {}", quoted(delimiter)),
        Remedy::Delimiter(None) => "--delimiter CHAR".to_owned(),
        Remedy::DecimalComma => "--decimal-comma".to_owned(),
        Remedy::DecimalPoint => "--decimal-comma=false".to_owned(),
        Remedy::Header(true) => "--header".to_owned(),
        Remedy::Header(false) => "--no-header".to_owned(),
        Remedy::Skip => "--skip N".to_owned(),
        Remedy::Encoding => "--encoding NAME".to_owned(),
        Remedy::Sheet => "--sheet NAME".to_owned(),
        Remedy::Id(columns) => format!("--id {}", quoted(&columns.join(","))),
        Remedy::Gaps(text) => format!("--gaps {}", quoted(text)),
        Remedy::Exclude(column) => format!("--exclude {}", quoted(column)),
        Remedy::Columns => "--columns COLUMNS".to_owned(),
        Remedy::Array => "--array NAME".to_owned(),
        Remedy::MaxMemory => "--max-memory SIZE".to_owned(),
        Remedy::Impute => "`covary impute`".to_owned(),
        Remedy::Method(method) => format!("--inference {method}"),
        Remedy::Matrix(kind) => format!("--matrix {kind} --rows N"),
        _ => String::new(),
    }
}

/// What the command calls a remedy of a figure.
fn figure_flags(remedy: &FigureRemedy) -> String {
    match remedy {
        FigureRemedy::Library(remedy) => flags(remedy),
        FigureRemedy::Components(n) => format!("--components {n}"),
        FigureRemedy::Families(families) => {
            format!("--model {}", families.iter().map(|f| f.name()).collect::<Vec<_>>().join(" or "))
        }
        FigureRemedy::Kind(kind) => format!("--kind {kind}"),
        FigureRemedy::Shape => "--shape ROWSxCOLUMNS".to_owned(),
        _ => String::new(),
    }
}

/// What the command calls a part of a request.
fn flag(argument: Argument) -> &'static str {
    match argument {
        Argument::Mixtures => "--mixtures",
        Argument::Views => "--view",
        Argument::Classes => "--target",
        Argument::Rotation => "--rotation",
        Argument::Standardize => "--standardize",
        Argument::Share => "--components as a share of the variance",
        Argument::Matrix => "--matrix",
        _ => "this option",
    }
}
