//! `headmark man` and `headmark completions`: what packages install beside the program.

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::names;
use super::shared::say;

/// Prints what completes commands and options in a shell.
pub(super) fn completions(cli: &Command, shell: Shell) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli.clone(), cli.get_name(), &mut script);
    print(&script)
}

/// Prints the manual page: the program's own, and a section for each of its commands.
pub(super) fn page(cli: &Command) -> Result<(), String> {
    let mut cli = cli.clone();
    cli.build();
    let mut page = Vec::new();
    Man::new(cli.clone()).render(&mut page).map_err(|error| error.to_string())?;
    sections(&cli, "headmark", &mut page).map_err(|error| error.to_string())?;
    print(&page)
}

/// The sections of a command's subcommands.
fn sections(of: &Command, parent: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    for command in of.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("{parent} {}", command.get_name());
        page.extend(format!("\n.SH \"{}\"\n", name.to_uppercase()).bytes());
        // Settings are in the sections of the program.
        let is_told = |arg: &Arg| arg.is_global_set() || names::of(arg).is_some() || arg.get_id() == "help";
        let man = Man::new(command.clone().mut_args(|arg| if is_told(&arg) { arg.hide(true) } else { arg }));
        man.render_description_section(page)?;
        if !command.get_arguments().all(is_told) {
            man.render_options_section(page)?;
        }
        sections(command, &name, page)?;
    }
    Ok(())
}

fn print(text: &[u8]) -> Result<(), String> {
    say(String::from_utf8_lossy(text).trim_end())
}
