//! `covary man`: the manual page.

use crate::failure::Failure;
use clap::{Args, Command};

/// Write the manual page of covary, or of one of its commands, to standard output.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary man > covary.1
  covary man impute > covary-impute.1")]
pub(crate) struct Man {
    /// The verb; all of covary if not given.
    verb: Option<String>,
}

impl Man {
    pub(crate) fn run(&self, command: &Command) -> Result<(), Failure> {
        let mut command = command.clone();
        command.build();
        let page = match &self.verb {
            None => command,
            Some(verb) => command
                .find_subcommand(verb)
                .ok_or_else(|| Failure::Call(format!("covary has no verb `{verb}`")))?
                .clone(),
        };
        let title = page.get_display_name().unwrap_or("covary").to_owned();
        let mut text = Vec::new();
        let page = clap_mangen::Man::new(page).title(title);
        page.render(&mut text).map_err(|e| Failure::work("standard output", e))?;
        super::print(String::from_utf8_lossy(&text).trim_end())
    }
}
