use super::Error;

/// A file format, and whether it is compressed by gzip as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// How the cells are laid out.
    pub layout: Layout,
    /// Whether the bytes are gzip.
    pub gzip: bool,
}

/// How the cells of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Text, cells separated by commas.
    Csv,
    /// Text, cells separated by tabs.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, the file or the stream form.
    Arrow,
    /// One NumPy array of real numbers, in two dimensions or, as one column, in one. NaN is a gap.
    /// Columns are called `x1, x2, …`.
    ///
    /// A filled array keeps the type of its items, or becomes float64 where that has no room for what
    /// was filled, as in one of integers; it leaves in C order and little-endian. Columns of text
    /// cannot be written.
    Npy,
    /// A zip of NumPy arrays, of which [`ReadOptions::array`](super::ReadOptions::array) names one or
    /// only one is a table of numbers. If another array, `columns`, holds one text per column, those
    /// are their names.
    ///
    /// A filled archive keeps its other arrays as they are. A table that came from elsewhere is
    /// written as the arrays `x` and `columns`.
    Npz,
    /// An Excel workbook, of which one worksheet is read ([`ReadOptions::sheet`](super::ReadOptions::sheet)); not written.
    Xlsx,
    /// An OpenDocument spreadsheet, the same.
    Ods,
}

impl Layout {
    /// Every layout with the words it goes by: its own name first, then further file extensions.
    pub const NAMES: [(Self, &'static [&'static str]); 8] = [
        (Self::Csv, &["csv", "txt"]),
        (Self::Tsv, &["tsv", "tab"]),
        (Self::Parquet, &["parquet", "pq"]),
        (Self::Arrow, &["arrow", "feather", "ipc", "arrows"]),
        (Self::Npy, &["npy"]),
        (Self::Npz, &["npz"]),
        (Self::Xlsx, &["xlsx", "xlsm"]),
        (Self::Ods, &["ods"]),
    ];

    /// Its name, as users type it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(layout, _)| *layout == self).expect("every layout is listed").1[0]
    }

    /// Whether it is text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }

    /// Why it cannot be written.
    pub(super) fn not_written(self) -> Error {
        if self.is_written() {
            Error::NotBuilt { format: self.name() }
        } else {
            Error::NotWritten { format: self.name() }
        }
    }

    /// Whether it is written, and not only read.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::Xlsx | Self::Ods)
    }
}

impl Format {
    /// Comma-separated text.
    pub const CSV: Self = Self { layout: Layout::Csv, gzip: false };

    /// The format that a table of this one leaves in if no other is asked for: itself, and comma-separated text for those
    /// that are only read.
    #[must_use]
    pub fn written(self) -> Self {
        if self.layout.is_written() { self } else { Self::CSV }
    }

    /// The format a file of this name holds: by its extension, with or without `.gz` behind it.
    ///
    /// ```
    /// use covary::io::{Format, Layout};
    /// assert_eq!(Format::of_file("air.TSV.gz"), Some(Format { layout: Layout::Tsv, gzip: true }));
    /// assert_eq!(Format::of_file("air"), None);
    /// ```
    pub fn of_file(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let (stem, gzip) = match lower.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (lower.as_str(), false),
        };
        Self::of_word(stem.rsplit_once('.')?.1).map(|format| Self { gzip, ..format })
    }

    /// The format of a name such as `csv` or `tsv.gz`.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] for any other word.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        Self::of_file(&format!(".{name}")).ok_or_else(|| Error::UnknownFormat { name: name.to_owned() })
    }

    fn of_word(word: &str) -> Option<Self> {
        let (layout, _) = Layout::NAMES.iter().find(|(_, words)| words.contains(&word))?;
        Some(Self { layout: *layout, gzip: false })
    }
}
