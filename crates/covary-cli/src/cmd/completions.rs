//! `covary completions`: shell completions.

use crate::failure::Failure;
use clap::{Args, Command};
use clap_complete::Shell;

/// Write completions for a shell to standard output.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary completions bash > ~/.local/share/bash-completion/completions/covary
  covary completions fish > ~/.config/fish/completions/covary.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, command, "covary", &mut text);
        super::print(String::from_utf8_lossy(&text).trim_end())
    }
}
