//! What people read keeps to 80 columns where a terminal has them; pipes get whole lines.

use super::{covary, folder_with_examples, succeed};
use covary::family::{Arrangement, Family, Kind};
use covary_report::text::columns;
use std::fs;
use std::path::Path;

/// What a command prints where `COLUMNS` says so, or in a pipe.
fn printed(folder: &Path, width: Option<usize>, command: &str) -> String {
    let mut call = covary();
    call.current_dir(folder).args(command.split_whitespace());
    if let Some(width) = width {
        call.env("COLUMNS", width.to_string());
    }
    let output = call.output().expect("the command starts");
    assert!(output.status.success(), "covary {command}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn keeps_to(width: usize, text: &str) {
    let wide: Vec<&str> = text.lines().filter(|line| columns(line) > width).collect();
    assert!(wide.is_empty(), "wider than {width}:\n{}", wide.join("\n"));
}

/// The numbers of a text, whatever its lines.
fn numbers(text: &str) -> Vec<&str> {
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let mut numbers: Vec<&str> = text.split_whitespace().filter(is_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[test]
fn models_of_every_family_are_described_in_80_columns() {
    let folder = folder_with_examples();
    let root = folder.path();
    for &family in Family::ALL {
        let complete = family.kind() == Kind::Sources;
        let (table, flags) = match family.arrangement() {
            Arrangement::InTime => ("months.csv", "--time month --season 12"),
            Arrangement::Curves => ("growth.csv", "--curve child --time age"),
            Arrangement::Exchangeable if family.has_views() => {
                ("wine_gaps.csv", "--view x=1:5 --view y=6:13")
            }
            Arrangement::Exchangeable if complete => ("wine.csv", ""),
            Arrangement::Exchangeable => ("wine_gaps.csv", ""),
        };
        succeed(root, &format!("fit -q examples/{table} --model {family} {flags} -o m.covary"));
        let narrow = printed(root, Some(80), "inspect m.covary");
        keeps_to(80, &narrow);
        keeps_to(60, &printed(root, Some(60), "inspect m.covary"));
        // No number of what a pipe gets is lost.
        let whole = printed(root, None, "inspect m.covary");
        assert_eq!(numbers(&narrow), numbers(&whole), "{family}");
    }
}

#[test]
fn long_names_and_many_components_are_folded_and_names_stay_apart() {
    let folder = folder_with_examples();
    let root = folder.path();
    let table = fs::read_to_string(root.join("examples/wine.csv")).unwrap();
    let (_, rows) = table.split_once('\n').unwrap();
    let n = rows.lines().next().unwrap().split(',').count();
    let name = |j: usize| {
        format!("Concentration of dissolved organic carbon in surface water at station {j} of the lake")
    };
    let header = (0..n).map(name).collect::<Vec<_>>().join(",");
    fs::write(root.join("long.csv"), format!("{header}\n{rows}")).unwrap();
    succeed(root, "fit -q long.csv --model ppca --components 10 -o m.covary");
    let narrow = printed(root, Some(80), "inspect m.covary");
    keeps_to(80, &narrow);
    let blocks = narrow.matches("\n  column").count();
    assert!(blocks >= 2, "{narrow}");
    // The last column is text.
    for j in 0..n - 1 {
        assert_eq!(narrow.matches(&format!("station {j} ")).count(), blocks, "{narrow}");
    }
    // One line for each column, for those who search.
    let whole = printed(root, None, "inspect m.covary");
    assert_eq!(whole.matches("\n  column").count(), 1, "{whole}");
    for verb in [
        "select long.csv -q --max-components 4",
        "select examples/wine.csv -q --model mppca --max-components 2",
    ] {
        keeps_to(80, &printed(root, Some(80), verb));
    }
}

#[test]
fn help_keeps_to_the_terminal() {
    let folder = folder_with_examples();
    let listed = printed(folder.path(), None, "--help");
    let verbs =
        listed.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() >= 14, "{verbs:?}");
    for verb in verbs.into_iter().chain([""]) {
        for asked in ["-h", "--help"] {
            for (width, most) in [(None, 80), (Some(80), 80), (Some(100), 100), (Some(200), 100)] {
                let help = printed(folder.path(), width, &format!("{verb} {asked}"));
                keeps_to(most, &help);
            }
        }
    }
}

#[test]
fn paragraphs_of_help_are_filled_and_lists_keep_their_lines() {
    let folder = folder_with_examples();
    let plot = printed(folder.path(), Some(80), "plot --help");
    for kind in covary_report::plot::Kind::ALL {
        let listed = format!("  {:<15} ", kind.name());
        assert!(plot.lines().any(|line| line.starts_with(&listed)), "{listed}: {plot}");
    }
    // A paragraph has no line that a word of the next would have fitted.
    let fit = printed(folder.path(), Some(80), "fit --help");
    let paragraph: Vec<&str> = fit.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    for pair in paragraph.windows(2) {
        let next = pair[1].split(' ').next().unwrap();
        assert!(columns(pair[0]) + 1 + columns(next) > 80, "{pair:?}");
    }
    assert!(paragraph.len() > 2);
}
