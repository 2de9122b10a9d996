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
    pub(crate) fn of_table(name: &str, why: covary::Error) -> Self {
        match why {
            covary::Error::Interrupted => Self::Interrupted,
            why @ covary::Error::EmptyColumn { .. } => {
                Self::unfit(name, format!("{why}: --exclude sets it aside"))
            }
            // The call asks for what no such table has.
            why @ (covary::Error::TooManyComponents { .. }
            | covary::Error::FixedComponents { .. }
            | covary::Error::OutOfRange { .. }) => Self::work(name, why),
            why => Self::unfit(name, why),
        }
    }

    fn unfit(about: &str, why: impl Display) -> Self {
        Self::Unfit { about: about.to_owned(), why: why.to_string() }
    }

    /// What the reader refused.
    pub(crate) fn of_file(name: &str, why: &covary::io::Error) -> Self {
        use covary::io::Error::{NoNumericColumn, NoTypedNumbers, NothingChosen};
        match why {
            NoNumericColumn { .. } | NoTypedNumbers { .. } | NothingChosen => Self::unfit(name, why),
            _ => Self::work(name, why),
        }
    }

    /// Says it on standard error; a closed standard error changes nothing.
    pub(crate) fn report(&self) -> ExitCode {
        let mut err = std::io::stderr().lock();
        let words = match self {
            Self::Call(why) => format!("{why}\n\nFor more information, try '--help'."),
            Self::Work { about, why } | Self::Unfit { about, why } => format!("{about}: {why}"),
            Self::Interrupted => "interrupted; nothing was written".to_owned(),
        };
        let _ = writeln!(err, "covary: {}", crate::console::harmless(&words));
        ExitCode::from(match self {
            Self::Call(_) => 2,
            Self::Work { .. } | Self::Unfit { .. } => 1,
            Self::Interrupted => Self::INTERRUPTED,
        })
    }
}
