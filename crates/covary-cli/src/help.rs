//! Help texts that keep to the width of the terminal.

use crate::console::output_width;
use clap::Command;
use clap::builder::StyledStr;

/// Widths of help: where none is known, and the widest that lines are read at.
const USUAL: usize = 80;
const WIDEST: usize = 100;
/// What clap indents the help of options by.
const OF_OPTIONS: usize = 10;

/// A command whose help is filled anew for the terminal. Texts are written with their lines broken for those who read the
/// source.
pub(crate) fn filled(command: Command) -> Command {
    let width = output_width().unwrap_or(USUAL).min(WIDEST);
    texts(command, width).term_width(width)
}

fn texts(mut command: Command, width: usize) -> Command {
    if let Some(text) = command.get_about().map(|text| unbroken(text, width)) {
        command = command.about(text);
    }
    if let Some(text) = command.get_long_about().map(|text| unbroken(text, width)) {
        command = command.long_about(text);
    }
    if let Some(text) = command.get_after_help().map(|text| examples(&unbroken(text, width), width)) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_after_long_help().map(|text| examples(&unbroken(text, width), width)) {
        command = command.after_long_help(text);
    }
    command
        .mut_args(|mut arg| {
            if let Some(text) = arg.get_help().map(|text| unbroken(text, width - OF_OPTIONS)) {
                arg = arg.help(text);
            }
            if let Some(text) = arg.get_long_help().map(|text| unbroken(text, width - OF_OPTIONS)) {
                arg = arg.long_help(text);
            }
            arg
        })
        .mut_subcommands(|verb| texts(verb, width))
}

/// Paragraphs on one line each, which clap fills. What is indented is a list: an item is filled here, below itself, and so is what
/// it means, if two spaces set that apart.
fn unbroken(text: &StyledStr, width: usize) -> String {
    let mut out: Vec<String> = Vec::new();
    // Where the lines of an item go on, or none within a paragraph.
    let mut item: Option<usize> = None;
    let mut goes_on = false;
    for line in text.to_string().lines() {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        let stands = line.is_empty() || line.starts_with([' ', '-']);
        match (item, out.last_mut()) {
            (Some(hang), Some(last)) if indent > 0 && indent >= hang && !words.is_empty() => {
                last.extend([" ", words]);
            }
            (None, Some(last)) if goes_on && !stands => last.extend([" ", words]),
            _ => {
                out.push(line.to_owned());
                item = (indent > 0).then(|| parts(line).1);
            }
        }
        goes_on = !stands;
    }
    out.iter().map(|line| hanging(line, width)).collect::<Vec<_>>().join("\n")
}

/// The bytes of an item before what is filled, and the column in which that goes on below: what two spaces set apart, or the whole.
fn parts(line: &str) -> (usize, usize) {
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    match words.find("  ") {
        Some(at) => {
            let head = line.len() - words[at..].trim_start_matches(' ').len();
            (head, line[..head].chars().count())
        }
        None => (indent, indent + 2),
    }
}

/// An item of a list within the width; anything else as it is.
fn hanging(line: &str, width: usize) -> String {
    // Commands are folded as a shell reads them.
    let is_command = line.trim_start_matches(' ').starts_with("covary ");
    if !line.starts_with(' ') || line.chars().count() <= width || is_command {
        return line.to_owned();
    }
    let (head, hang) = parts(line);
    let (head, rest) = line.split_at(head);
    let mut lines = vec![head.to_owned()];
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        let last = lines.last_mut().expect("one was begun");
        let begun = !last.is_empty() && !last.ends_with(' ');
        if begun && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{}{word}", " ".repeat(hang)));
        } else {
            last.extend([if begun { " " } else { "" }, word]);
        }
    }
    lines.join("\n")
}

/// Commands that are too long for a line go on below, as a shell reads them.
fn examples(text: &str, width: usize) -> String {
    let fold = |line: &str| {
        if !line.starts_with("  covary ") {
            return line.to_owned();
        }
        let mut lines = vec![String::new()];
        for word in line.trim().split(' ') {
            let last = lines.last_mut().expect("one was begun");
            if last.is_empty() {
                last.extend(["  ", word]);
            } else if last.len() + 1 + word.len() + 2 <= width {
                last.extend([" ", word]);
            } else {
                last.push_str(" \\");
                lines.push(format!("      {word}"));
            }
        }
        lines.join("\n")
    };
    text.lines().map(fold).collect::<Vec<_>>().join("\n")
}
