//! Figures and tables of papers, reproduced, with the papers' numbers next to ours.
//!
//! An [`Exhibit`] is a figure or a table of a paper, a file each; [`EXHIBITS`] lists them. Making one
//! gives [`Findings`]: charts, and comparisons whose rows say what the paper has, what we have, by how
//! much they differ and, if they do, why. A [`Record`] is what is kept of it, as files: JSON with all
//! facts, Markdown and SVG; and [`index`] makes one page of many.
//!
//! ```
//! use covary_reproduce::{Data, Run, find};
//! let exhibit = find("chen-2018-fig-11")?;
//! let record = exhibit.record(&Run::new(&Data::none()))?;
//! assert!(record.tables.iter().flat_map(|t| &t.rows).all(|row| row.agrees || row.why.is_some()));
//! # Ok::<(), covary_reproduce::Error>(())
//! ```

mod bishop_1999;
mod burnaev;
mod chen_2018;
mod data;
mod error;
mod findings;
pub mod index;
mod linderman_2022;
mod record;
mod run;
mod tipping_bishop_1999;
mod tipping_bishop_1999b;

pub use data::Data;
pub use error::Error;
pub use findings::{Comparison, Findings, Part, Row};
pub use record::{File, Record, Verdict};
pub use run::Run;

/// A figure or a table of a paper.
#[derive(Debug)]
pub struct Exhibit {
    /// As users type it.
    pub name: &'static str,
    /// Authors, year, figure or table.
    pub source: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Folders of data it cannot do without; shipped tables are not among them.
    pub needs: &'static [&'static str],
    /// Makes it.
    make: fn(&Run) -> Result<Findings, Error>,
}

/// All of them, in the order of their papers.
pub const EXHIBITS: &[Exhibit] = &[
    tipping_bishop_1999::fig_1::EXHIBIT,
    tipping_bishop_1999::table_1::EXHIBIT,
    tipping_bishop_1999b::oil_flow::EXHIBIT,
    tipping_bishop_1999b::classes::EXHIBIT,
    bishop_1999::hinton::EXHIBIT,
    chen_2018::fig_02::EXHIBIT,
    chen_2018::fig_03::EXHIBIT,
    chen_2018::fig_04::EXHIBIT,
    chen_2018::fig_04::EXHIBIT_MNIST,
    chen_2018::fig_05::EXHIBIT,
    chen_2018::fig_06::EXHIBIT,
    chen_2018::fig_07::EXHIBIT,
    chen_2018::fig_08::EXHIBIT,
    chen_2018::fig_09::EXHIBIT,
    chen_2018::fig_09::EXHIBIT_MNIST,
    chen_2018::fig_10::EXHIBIT,
    chen_2018::fig_10::EXHIBIT_MNIST,
    chen_2018::fig_11::EXHIBIT,
    chen_2018::fig_12::EXHIBIT,
    chen_2018::fig_13::EXHIBIT,
    chen_2018::fig_14::EXHIBIT,
    chen_2018::fig_14_all_months::EXHIBIT,
    chen_2018::fig_14_in_time::EXHIBIT,
    burnaev::divergences::EXHIBIT,
    burnaev::digits::SPECTRUM,
    burnaev::digits::RECONSTRUCTIONS,
    burnaev::missing::EXHIBIT,
    linderman_2022::scree::EXHIBIT,
];

/// The exhibit of that name.
///
/// # Errors
/// [`Error::Unknown`] with the names there are.
pub fn find(name: &str) -> Result<&'static Exhibit, Error> {
    EXHIBITS.iter().find(|e| e.name == name).ok_or_else(|| Error::Unknown { name: name.to_owned() })
}

impl Exhibit {
    /// Folders that are needed and not there.
    pub fn missing(&self, data: &Data) -> Vec<&'static str> {
        self.needs.iter().copied().filter(|folder| !data.has(folder)).collect()
    }

    /// Makes it, as it will be kept.
    ///
    /// # Errors
    /// [`Error::NoData`] if a folder is not there, [`Error::Interrupted`] if the run's observer asked
    /// to stop, and what the library refused to do.
    pub fn record(&self, run: &Run) -> Result<Record, Error> {
        if let Some(folder) = self.missing(run.data).first() {
            return Err(Error::no_data(folder, run.data));
        }
        Ok(Record::new(self, run, (self.make)(run)?))
    }
}
