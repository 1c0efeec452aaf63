//! The names of settings: those of their options, with underscores, and the nearest to a misspelt
//! one.

use std::collections::BTreeMap;

use clap::builder::{OsStr, Resettable};
use clap::{Arg, ArgMatches, Command};

/// The id of the argument that names the settings file.
pub(super) const SETTINGS_FILE: &str = "settings_file";

/// The name of a setting in a settings file; None for an argument that is no setting. Every setting
/// has a variable.
pub(super) fn of(arg: &Arg) -> Option<String> {
    let is_setting = arg.get_env().is_some() && arg.get_id() != SETTINGS_FILE;
    arg.get_long().filter(|_| is_setting).map(|long| long.replace('-', "_"))
}

/// The settings of a command and its subcommands.
pub(super) fn settings(command: &Command) -> BTreeMap<String, Arg> {
    let mut settings = BTreeMap::new();
    collect(command, &mut settings);
    settings
}

fn collect(command: &Command, settings: &mut BTreeMap<String, Arg>) {
    for arg in command.get_arguments() {
        if let Some(name) = of(arg) {
            settings.entry(name).or_insert_with(|| arg.clone());
        }
    }
    command.get_subcommands().for_each(|command| collect(command, settings));
}

/// The known name that is most like this one.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| strsim::osa_distance(known, name)).unwrap_or_default()
}

/// What to tell of a name that no setting has.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let like = name.to_ascii_lowercase().replace('-', "_");
    let like = like.strip_prefix("headmark_").unwrap_or(&like);
    format!("{name} is not a setting; the nearest is {}", nearest(like, known))
}

/// Why a setting cannot have a value; None where it can.
pub(super) fn why_refused(arg: &Arg, value: &str) -> Option<String> {
    let alone = arg.clone().env(Resettable::<OsStr>::Reset);
    let given = format!("--{}={value}", arg.get_long()?);
    let read: Result<ArgMatches, _> = Command::new("headmark").no_binary_name(true).arg(alone).try_get_matches_from([given]);
    // The first line has the value and the reason, then comes the usage of a command that is none.
    let why = read.err()?.render().to_string();
    Some(why.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_setting_takes_the_values_that_a_settings_file_has() {
        let settings = settings(&crate::app::cli::Cli::command());
        let flags: Vec<_> = settings.iter().filter(|(_, arg)| !arg.get_action().takes_values()).map(|(name, _)| name).collect();
        assert_eq!(flags, Vec::<&String>::new());
        for value in ["true", "false"] {
            for name in ["merge", "compression", "redis_cluster"] {
                assert_eq!(why_refused(&settings[name], value), None, "{name} = {value}");
            }
        }
    }
}
