//! Help texts that keep to the width of the terminal.

use crate::console::output_width;
use clap::Command;
use clap::builder::StyledStr;

/// Widths of help: where none is known, and the widest that lines are read at.
const USUAL: usize = 80;
const WIDEST: usize = 100;

/// A command whose help is filled anew for the terminal. Texts are written with their lines broken for those who read the
/// source.
pub(crate) fn filled(command: Command) -> Command {
    let width = output_width().unwrap_or(USUAL).min(WIDEST);
    texts(command, width).term_width(width)
}

fn texts(mut command: Command, width: usize) -> Command {
    if let Some(text) = command.get_about().map(unbroken) {
        command = command.about(text);
    }
    if let Some(text) = command.get_long_about().map(unbroken) {
        command = command.long_about(text);
    }
    if let Some(text) = command.get_after_help().map(|text| examples(&unbroken(text), width)) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_after_long_help().map(|text| examples(&unbroken(text), width)) {
        command = command.after_long_help(text);
    }
    command
        .mut_args(|mut arg| {
            if let Some(text) = arg.get_help().map(unbroken) {
                arg = arg.help(text);
            }
            if let Some(text) = arg.get_long_help().map(unbroken) {
                arg = arg.long_help(text);
            }
            arg
        })
        .mut_subcommands(|verb| texts(verb, width))
}

/// Paragraphs on one line each. What is indented is a list and keeps its lines.
fn unbroken(text: &StyledStr) -> String {
    let mut out = String::new();
    let mut goes_on = false;
    for line in text.to_string().lines() {
        let stands = line.is_empty() || line.starts_with([' ', '-']);
        if !out.is_empty() {
            out.push(if goes_on && !stands { ' ' } else { '\n' });
        }
        out.push_str(line);
        goes_on = !stands;
    }
    out
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
