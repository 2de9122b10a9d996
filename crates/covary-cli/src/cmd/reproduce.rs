//! `covary reproduce`: figures and tables of papers with our numbers beside theirs.

use super::said_written;
use crate::args::{Running, at_least_one};
use crate::console::{Console, count};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Output;
use clap::Args;
use covary::io::Error;
use covary_reproduce::index::{self, LeftOut};
use covary_reproduce::{Data, EXHIBITS, Exhibit, File, Record, Run, find};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Reproduce figures and tables of papers, and compare their numbers with ours.
///
/// Each exhibit becomes NAME.svg, NAME.json (all numbers) and NAME.md; index.html and index.md list
/// the exhibits in the folder. They are written after each exhibit: Ctrl-C keeps what is finished.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary reproduce --list
  covary reproduce chen-2018-fig-11 -o papers")]
pub(crate) struct Reproduce {
    /// Exhibits of --list, or `all` for every one whose data are there.
    #[arg(verbatim_doc_comment, value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,

    /// Say which exhibits there are, and which data they need.
    #[arg(long, verbatim_doc_comment, conflicts_with_all = ["names", "output", "data"])]
    list: bool,

    /// Folder for the results; made if it is not there.
    #[arg(short, long, verbatim_doc_comment, value_name = "DIR", required_unless_present = "list")]
    output: Option<PathBuf>,

    /// Folder that holds a folder per data set. If not given, COVARY_DATA; else ../shared/data if
    /// that is there.
    #[arg(long, verbatim_doc_comment, value_name = "FOLDER")]
    data: Option<PathBuf>,

    /// Repeats of what is repeated at most; as many as the paper made if not given.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    repeats: Option<usize>,

    /// Seed of everything left to chance.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    running: Running,
}

impl Reproduce {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.list {
            return if self.running.json {
                self.running.report(&listed_json())
            } else {
                super::print(&listed())
            };
        }
        self.running.run(|console| {
            let Some(folder) = &self.output else {
                return Err(Failure::Call("name an exhibit, and a folder with -o DIR".to_owned()));
            };
            let data = self.data();
            let all = self.names.iter().any(|name| name == "all");
            let wanted: Vec<&Exhibit> = if all {
                EXHIBITS.iter().collect()
            } else {
                let found = self.names.iter().map(|name| find(name));
                found.collect::<Result<_, _>>().map_err(|e| Failure::Call(e.to_string()))?
            };
            fs::create_dir_all(folder)
                .map_err(|e| Failure::of_file(&folder.display().to_string(), &Error::Write(e)))?;
            let mut left_out = Vec::new();
            let mut made = Vec::new();
            for exhibit in wanted {
                if interrupt::asked() {
                    break;
                }
                if let (true, Some(set)) = (all, exhibit.missing(&data).first()) {
                    let why = format!("its data `{set}` are not there; give their folder with --data FOLDER");
                    console.warn(&format!("{} is left out: {why}", exhibit.name));
                    left_out.push(LeftOut { name: exhibit.name.to_owned(), why });
                    continue;
                }
                match self.make(console, exhibit, &data) {
                    Ok(record) => {
                        write(folder, &record.files())?;
                        made.push(record);
                    }
                    Err(Failure::Interrupted) if !made.is_empty() => break,
                    Err(failure) => return Err(failure),
                }
                write(folder, &indexes(folder, &left_out))?;
            }
            said_written(console, &[&folder.join("index.html")]);
            self.running.report(&json!({
                "made": made,
                "left_out": left_out.iter().map(|l| json!({ "name": l.name, "why": l.why })).collect::<Vec<_>>(),
            }))
        })
    }

    fn data(&self) -> Data {
        let beside = || Some(PathBuf::from("../shared/data")).filter(|p| p.is_dir());
        let folder = self.data.clone().or_else(|| std::env::var_os("COVARY_DATA").map(PathBuf::from));
        folder.or_else(beside).map_or(Data::none(), Data::of)
    }

    fn make(&self, console: Console, exhibit: &Exhibit, data: &Data) -> Result<Record, Failure> {
        let start = Instant::now();
        let progress = console.share_of_several(exhibit.name);
        let observer =
            |what: &str, done, total| progress.stage(&format!("{}: {what}", exhibit.name), done, total);
        let run = Run { data, seed: self.seed, most_repeats: self.repeats, observer: &observer };
        let record = exhibit.record(&run).map_err(|e| match e {
            covary_reproduce::Error::Interrupted => Failure::Interrupted,
            e => Failure::work(exhibit.name, e),
        })?;
        drop(progress);
        let (agree, rows) = record.agreement();
        let seconds = start.elapsed().as_secs_f64();
        console.say(&format!("{}: {agree} of {} agree, {seconds:.1} s", exhibit.name, count(rows, "row")));
        Ok(record)
    }
}

/// Pages over all exhibits whose facts the folder holds.
fn indexes(folder: &Path, left_out: &[LeftOut]) -> [File; 2] {
    let kept = |exhibit: &Exhibit| -> Option<Record> {
        let text = fs::read_to_string(folder.join(format!("{}.json", exhibit.name))).ok()?;
        serde_json::from_str(&text).ok()
    };
    let records: Vec<Record> = EXHIBITS.iter().filter_map(kept).collect();
    let file = |name: &str, text| File { name: name.to_owned(), text };
    [
        file("index.html", index::html(&records, left_out)),
        file("index.md", index::markdown(&records, left_out)),
    ]
}

fn write(folder: &Path, files: &[File]) -> Result<(), Failure> {
    for file in files {
        let output = Output::open(Some(&folder.join(&file.name)))?;
        output.write(|out| out.write_all(file.text.as_bytes()).map_err(Error::Write))?;
    }
    Ok(())
}

fn needs(exhibit: &Exhibit) -> String {
    if exhibit.needs.is_empty() { "nothing".to_owned() } else { exhibit.needs.join(", ") }
}

fn listed() -> String {
    let line = |e: &Exhibit| format!("{}\n    {}\n    {}; needs {}", e.name, e.title, e.source, needs(e));
    EXHIBITS.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn listed_json() -> Value {
    let entry =
        |e: &Exhibit| json!({ "name": e.name, "source": e.source, "title": e.title, "needs": e.needs });
    json!({ "exhibits": EXHIBITS.iter().map(entry).collect::<Vec<_>>() })
}
