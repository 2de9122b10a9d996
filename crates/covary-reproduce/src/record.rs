//! What is kept of an exhibit: JSON with all facts, Markdown for people, SVG.

use crate::{Comparison, Exhibit, Findings, Row, Run};
use covary_report::Style;
use covary_report::chart::Chart;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// An exhibit as it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Authors, year, figure or table.
    pub source: String,
    /// What it shows.
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    /// Seed of everything left to chance.
    pub seed: u64,
    /// The comparisons.
    pub tables: Vec<Comparison>,
    /// What else the reader must know.
    pub notes: Vec<String>,
    /// The figures as numbers.
    pub charts: Vec<Chart>,
}

/// Whether an exhibit agrees with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// ✓ where all rows agree, ≈ where the others differ for a stated reason, ✗ where one does not say why.
    pub sign: char,
    /// How many agree.
    pub words: String,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Record {
    pub(crate) fn new(exhibit: &Exhibit, run: &Run, found: Findings) -> Self {
        let mut command = format!("covary reproduce {} -o DIR", exhibit.name);
        if !exhibit.needs.is_empty() {
            command.push_str(" --data FOLDER");
        }
        if run.seed != 0 {
            write!(command, " --seed {}", run.seed).expect("memory takes all");
        }
        if let Some(most) = run.most_repeats {
            write!(command, " --repeats {most}").expect("memory takes all");
        }
        Self {
            name: exhibit.name.to_owned(),
            source: exhibit.source.to_owned(),
            title: exhibit.title.to_owned(),
            command,
            seed: run.seed,
            tables: found.tables,
            notes: found.notes,
            charts: found.charts,
        }
    }

    /// Rows that agree, and all rows.
    pub fn agreement(&self) -> (usize, usize) {
        let rows = || self.tables.iter().flat_map(|t| &t.rows);
        (rows().filter(|r| r.agrees).count(), rows().count())
    }

    /// What came of it, in a sign and words.
    pub fn verdict(&self) -> Verdict {
        let (agree, rows) = self.agreement();
        let unexplained = |row: &Row| !row.agrees && row.why.is_none();
        if agree == rows {
            Verdict { sign: '✓', words: format!("agrees: {rows} of {rows}") }
        } else if self.tables.iter().flat_map(|t| &t.rows).any(unexplained) {
            Verdict { sign: '✗', words: format!("differs: {agree} of {rows} agree") }
        } else {
            Verdict {
                sign: '≈',
                words: format!("{agree} of {rows} agree; the others differ for a stated reason"),
            }
        }
    }

    /// Names of the figures' files.
    pub fn figure_names(&self) -> Vec<String> {
        let name = |k: usize| format!("{}-{}.svg", self.name, k + 1);
        match self.charts.len() {
            1 => vec![format!("{}.svg", self.name)],
            n => (0..n).map(name).collect(),
        }
    }

    /// Its files: NAME.json, NAME.md and the figures.
    pub fn files(&self) -> Vec<File> {
        // On one line: figures hold tens of thousands of numbers.
        let json = serde_json::to_string(self).expect("text and numbers are JSON");
        let mut files = vec![
            File { name: format!("{}.json", self.name), text: json + "\n" },
            File { name: format!("{}.md", self.name), text: self.markdown(1) },
        ];
        for (name, chart) in self.figure_names().into_iter().zip(&self.charts) {
            files.push(File { name, text: chart.draw(&Style::default()).to_string() });
        }
        files
    }

    /// For people, under a heading of this level.
    pub fn markdown(&self, level: usize) -> String {
        let mut out = format!("{} {}\n\n", "#".repeat(level), self.title);
        writeln!(out, "{}. Made by `{}`, seed {}.\n", self.source, self.command, self.seed).expect("memory");
        for name in self.figure_names() {
            writeln!(out, "![{}]({name})\n", cell(&self.title)).expect("memory");
        }
        for table in &self.tables {
            let Grid { caption, header, rows } = table.grid();
            writeln!(out, "**{caption}**\n\n| {} |", header.join(" | ")).expect("memory");
            writeln!(out, "|{}", " --- |".repeat(header.len())).expect("memory");
            for row in &rows {
                let cells: Vec<String> = row.iter().map(|c| cell(c)).collect();
                writeln!(out, "| {} |", cells.join(" | ")).expect("memory");
            }
            out.push('\n');
            for why in table.whys() {
                writeln!(out, "- {why}").expect("memory");
            }
            out.push_str(if table.whys().is_empty() { "" } else { "\n" });
        }
        for note in &self.notes {
            writeln!(out, "{note}\n").expect("memory");
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }
}

/// A comparison as it is shown.
pub(crate) struct Grid {
    pub(crate) caption: String,
    pub(crate) header: Vec<String>,
    /// The cells, of which the last says whether they agree.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Comparison {
    /// A column for each method where all rows have the same, else one for the paper and one for us.
    pub(crate) fn grid(&self) -> Grid {
        let names = |row: &Row| row.parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
        let methods = self.rows.first().map(names).unwrap_or_default();
        let ends = |first: &str, middle: Vec<String>, last: &str| {
            std::iter::once(first.to_owned()).chain(middle).chain([last.to_owned()]).collect::<Vec<_>>()
        };
        if methods.is_empty() || self.rows.iter().any(|row| names(row) != methods) {
            let row =
                |row: &Row| ends(&row.quantity, vec![row.paper.clone(), row.ours.clone()], &row.difference);
            return Grid {
                caption: self.title.clone(),
                header: ends("quantity", vec![self.against.clone(), "ours".to_owned()], "difference"),
                rows: self.rows.iter().map(row).collect(),
            };
        }
        // The same for all methods: a column; the same in all rows: said above.
        let one = |row: &Row| row.parts.iter().all(|part| part.paper == row.parts[0].paper);
        let by_row = self.rows.iter().all(one);
        let papers = |row: &Row| row.parts.iter().map(|part| part.paper.clone()).collect::<Vec<_>>();
        let by_column = !by_row
            && self.rows.len() > 1
            && self.rows.iter().all(|row| papers(row) == papers(&self.rows[0]));
        let caption = if by_row {
            self.title.clone()
        } else if by_column {
            let said: Vec<String> =
                self.rows[0].parts.iter().map(|part| format!("{} {}", part.name, part.paper)).collect();
            format!("{} ({}: {})", self.title, self.against, said.join(", "))
        } else {
            format!("{}: ours ({})", self.title, self.against)
        };
        let mut header = methods;
        if by_row {
            header.insert(0, self.against.clone());
        }
        let row = |row: &Row| {
            let mut cells: Vec<String> =
                row.parts.iter().map(|part| part.cell(!by_row && !by_column)).collect();
            if by_row {
                cells.insert(0, row.parts[0].paper.clone());
            }
            ends(&row.quantity, cells, &row.difference)
        };
        Grid {
            caption,
            header: ends("quantity", header, "difference"),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Why rows differ: each reason once, with the rows it is about.
    pub(crate) fn whys(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let Some(why) = &row.why else { continue };
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, rows)) => rows.push(&row.quantity),
                None => reasons.push((why, vec![&row.quantity])),
            }
        }
        reasons.into_iter().map(|(why, rows)| format!("{}: {why}", rows.join("; "))).collect()
    }
}

/// Text in a cell of Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
