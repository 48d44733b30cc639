//! `kvant man` and `kvant completions`: texts generated from the definition of the command line.

use crate::exit::write_stdout;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Writes the manual pages into `dir`, or all of them to standard output.
pub(crate) fn man(command: Command, dir: Option<&Path>) -> io::Result<()> {
    visit(&built(command), &mut |page| {
        let mut text = Vec::new();
        page.render(&mut text)?;
        match dir {
            Some(dir) => kvant_env::host::write_file(&dir.join(page.get_filename()), &text),
            None => write_stdout(&text),
        }
    })
}

pub(crate) fn completions(mut command: Command, shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "kvant", &mut script);
    write_stdout(&script)
}

fn built(command: Command) -> Command {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    command
}

/// Visits the page of `command`, then those of its visible subcommands.
fn visit(command: &Command, page: &mut dyn FnMut(Man) -> io::Result<()>) -> io::Result<()> {
    page(Man::new(command.clone()))?;
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| visit(sub, page))
}
