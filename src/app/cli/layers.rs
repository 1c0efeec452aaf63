//! Where settings come from: an option overrides a variable, a variable overrides the settings file,
//! and the file overrides the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStr, Resettable};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::names;
use super::settings_file::{SettingsFile, USUAL_FILE};

/// What a command line asks for, with the settings of its file.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) matches: ArgMatches,
    pub(super) file: Option<SettingsFile>,
    /// By the id of the argument: the value that the file gave.
    from_file: BTreeMap<String, String>,
}

/// Why a command line cannot be run.
pub(super) enum Unreadable {
    /// As clap tells it: also the help and the version.
    Line(clap::Error),
    /// What is wrong with the settings file.
    File(String),
}

impl From<clap::Error> for Unreadable {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

/// Reads a command line, the environment and the settings file that they name.
pub(super) fn read(command: &Command, args: &[OsString]) -> Result<Layers, Unreadable> {
    let reader = without_empty_variables(command.clone());
    let given = reader.clone().try_get_matches_from(args)?;
    let (path, leaf) = leaf(&given);
    let Some(file) = file_of(leaf) else {
        return Ok(Layers { matches: given, file: None, from_file: BTreeMap::new() });
    };
    let file = SettingsFile::read(&file).map_err(Unreadable::File)?;
    file.check(command).map_err(Unreadable::File)?;
    let from_file = not_given(command_at(command, &path), leaf, &file);
    let matches = with_defaults(reader, &path, &from_file).try_get_matches_from(args)?;
    Ok(Layers { matches, file: Some(file), from_file })
}

/// The subcommand that is to run, by its names, and what it is told.
fn leaf(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut leaf) = (Vec::new(), matches);
    while let Some((name, inner)) = leaf.subcommand() {
        path.push(name.to_owned());
        leaf = inner;
    }
    (path, leaf)
}

fn command_at<'a>(command: &'a Command, path: &[String]) -> &'a Command {
    path.iter().fold(command, |command, name| command.find_subcommand(name).unwrap_or(command))
}

/// The file that is named, or the usual one if it is there.
fn file_of(leaf: &ArgMatches) -> Option<PathBuf> {
    let named = leaf.get_one::<PathBuf>(names::SETTINGS_FILE);
    named.cloned().or_else(|| Path::new(USUAL_FILE).is_file().then(|| PathBuf::from(USUAL_FILE)))
}

/// The command, in which a variable that is there but empty, as compose files have it, is none.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |arg: &Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::<OsStr>::Reset) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

/// Whether an option or a variable gives a value.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// The values of the file that nothing overrides, by the id of the argument. A secret and the file
/// that holds it are one setting, so either overrides both.
fn not_given(command: &Command, leaf: &ArgMatches, file: &SettingsFile) -> BTreeMap<String, String> {
    let by_name: BTreeMap<String, &Arg> = command.get_arguments().filter_map(|arg| Some((names::of(arg)?, arg))).collect();
    let is_given = |name: &str| by_name.get(name).is_some_and(|arg| is_given(leaf, arg.get_id().as_str()));
    let free = file.settings.iter().filter_map(|setting| {
        let arg = by_name.get(&setting.name)?;
        let twin = match setting.name.strip_suffix("_file") {
            Some(secret) => secret.to_owned(),
            None => format!("{}_file", setting.name),
        };
        let is_free = !is_given(&setting.name) && !is_given(&twin);
        is_free.then(|| (arg.get_id().to_string(), setting.value.clone()))
    });
    free.collect()
}

/// The command with these values as the defaults of the arguments of one of its subcommands.
fn with_defaults(command: Command, path: &[String], values: &BTreeMap<String, String>) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |command| with_defaults(command, rest, values)),
        None => command.mut_args(|arg| match values.get(arg.get_id().as_str()) {
            Some(value) => arg.default_value(value.clone()),
            None => arg,
        }),
    }
}

impl Layers {
    /// The subcommand that is to run, and what it is told.
    pub(super) fn leaf(&self) -> &ArgMatches {
        leaf(&self.matches).1
    }

    /// Where the value of an argument comes from, in words for the operator.
    pub(super) fn source(&self, arg: &Arg) -> String {
        let id = arg.get_id().as_str();
        if self.from_file.contains_key(id) {
            return self.file.as_ref().map_or_else(String::new, |file| file.path.display().to_string());
        }
        match self.leaf().value_source(id) {
            Some(ValueSource::CommandLine) => format!("--{}", arg.get_long().unwrap_or_default()),
            Some(ValueSource::EnvVariable) => arg.get_env().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            _ => "default".to_owned(),
        }
    }
}
