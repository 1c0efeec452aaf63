//! `headmark config check` and `headmark config print`.

use std::fmt::Write as _;

use clap::{Arg, Command, Subcommand};

use super::layers::Layers;
use super::names;
use super::shared::{Failure, say, settled};
use crate::app::config::Config;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the settings of the server, without opening anything.
    ///
    /// It reads them as the server does, with the files that hold secrets and keys.
    Check(Box<Config>),
    /// Print every setting of the server, and where its value comes from.
    ///
    /// The output is a settings file that gives the same settings, except for secrets, which are
    /// left out.
    Print(Box<Config>),
}

pub(super) fn run(command: ConfigCommand, layers: &Layers, cli: &Command) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(config) => settled(*config).and_then(|_| Ok(valid(layers)?)),
        ConfigCommand::Print(_) => Ok(say(print(layers, cli).trim_end())?),
    }
}

fn valid(layers: &Layers) -> Result<(), String> {
    match &layers.file {
        Some(file) => say(&format!("The settings are valid: {}, the environment and the options.", file.path.display())),
        None => say("The settings are valid. There is no settings file."),
    }
}

/// Every setting, as lines of a settings file.
fn print(layers: &Layers, cli: &Command) -> String {
    let mut page = String::new();
    let mut last = None;
    let command = cli.find_subcommand("serve").unwrap_or(cli);
    for (arg, name) in command.get_arguments().filter_map(|arg| Some((arg, names::of(arg)?))) {
        let heading = arg.get_help_heading();
        if heading != last {
            let start = if page.is_empty() { "" } else { "\n" };
            // Writing to a String cannot fail.
            let _ = writeln!(page, "{start}# {}", heading.unwrap_or("Other"));
            last = heading;
        }
        let _ = match value(layers, arg) {
            None => writeln!(page, "# {name} is not set"),
            Some(_) if arg.is_hide_env_values_set() => writeln!(page, "# {name} is set and secret  # {}", layers.source(arg)),
            Some(value) => writeln!(page, "{name} = {value}  # {}", layers.source(arg)),
        };
    }
    page
}

/// The value of a setting in TOML; None where it has none.
fn value(layers: &Layers, arg: &Arg) -> Option<String> {
    let values = layers.leaf().get_raw(arg.get_id().as_str())?;
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).filter(|value| !value.is_empty()).collect();
    (!values.is_empty()).then(|| quoted(&values.join(",")))
}

/// A value as it stands in a settings file: numbers and booleans as they are, else as a string.
fn quoted(value: &str) -> String {
    let is_plain = value.parse::<i64>().is_ok_and(|number| number.to_string() == value) || ["true", "false"].contains(&value);
    if is_plain { value.to_owned() } else { toml_string(value) }
}

/// A basic string of TOML.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml() {
        for (value, expected) in [
            ("12", "12"),
            ("-3", "-3"),
            ("007", "\"007\""),
            ("true", "true"),
            ("0.5", "\"0.5\""),
            ("a \"b\" \\c\n", r#""a \"b\" \\c\u000A""#),
        ] {
            assert_eq!(quoted(value), expected);
        }
    }
}
