use crate::{Data, EXHIBITS};
use std::path::PathBuf;

/// Why there is no exhibit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No exhibit has this name.
    #[error("there is no exhibit `{name}`; there are {}", EXHIBITS.iter().map(|e| e.name).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// As it was typed.
        name: String,
    },
    /// A folder of data is not there.
    #[error(
        "the folder `{folder}` of data is not there{}; give the folder that holds it with --data FOLDER or COVARY_DATA",
        within.as_ref().map_or(String::new(), |w| format!(" in {}", w.display()))
    )]
    NoData {
        /// The folder that is needed.
        folder: String,
        /// Where it was looked for.
        within: Option<PathBuf>,
    },
    /// A file of data cannot be read.
    #[error("{path}: {why}")]
    Read {
        /// The file.
        path: String,
        /// What happened.
        why: String,
    },
    /// The library refused.
    #[error(transparent)]
    Numbers(covary::Error),
    /// There is no figure.
    #[error(transparent)]
    Figure(#[from] covary_report::Error),
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<covary::Error> for Error {
    fn from(why: covary::Error) -> Self {
        match why {
            covary::Error::Interrupted => Self::Interrupted,
            why => Self::Numbers(why),
        }
    }
}

impl Error {
    pub(crate) fn no_data(folder: &str, data: &Data) -> Self {
        Self::NoData { folder: folder.to_owned(), within: data.folder().map(PathBuf::from) }
    }
}
