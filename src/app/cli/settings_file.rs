//! The settings file: one `name = value` for each setting. The name is that of the option, with
//! underscores: `--redis-url` is `redis_url`.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::names;
use crate::base::secret::read_file;

/// What is read from the working directory where no other file is named.
pub(super) const USUAL_FILE: &str = "headmark.toml";

/// How large a settings file may be.
const MAX_BYTES: u64 = 1024 * 1024;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSetting {
    pub(super) name: String,
    /// As it would stand in a variable: the values of a list are separated by commas.
    pub(super) value: String,
    pub(super) line: usize,
}

/// A settings file that was read.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    pub(super) settings: Vec<FileSetting>,
}

impl SettingsFile {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence for the operator that quotes no value.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let failed = |why: &str| format!("{}: {why}", path.display());
        let bytes = read_file(path, MAX_BYTES).map_err(|error| failed(&format!("cannot read the settings: {error}")))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| failed("the file is not UTF-8"))?;
        let settings = parse(text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?;
        Ok(Self { path: path.to_owned(), settings })
    }

    /// Checks names and values against the settings of a command and its subcommands.
    ///
    /// # Errors
    /// A line for the operator for each that is wrong.
    pub(super) fn check(&self, command: &clap::Command) -> Result<(), String> {
        let known = names::settings(command);
        let faults = self.settings.iter().filter_map(|setting| {
            let why = match known.get(&setting.name) {
                None => names::unknown(&setting.name, known.keys().map(String::as_str)),
                Some(arg) => names::why_refused(arg, &setting.value)?,
            };
            Some(format!("{}:{}: {why}", self.path.display(), setting.line))
        });
        let faults: Vec<_> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\nheadmark: ")) }
    }
}

/// Reads the text of a file. An empty value counts as none, as in variables.
///
/// # Errors
/// The line, and what is wrong there.
fn parse(text: &str) -> Result<Vec<FileSetting>, (usize, String)> {
    let line_of = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| (error.span().map_or(1, |span| line_of(span.start)), error.message().to_owned()))?;
    let mut settings = Vec::new();
    for (name, value) in table.into_inner() {
        let line = line_of(name.span().start);
        let name = name.into_inner().into_owned();
        let value = value_of(value.get_ref()).map_err(|why| (line, format!("{name} {why}")))?;
        if !value.is_empty() {
            settings.push(FileSetting { name, value, line });
        }
    }
    settings.sort_by_key(|setting| setting.line);
    Ok(settings)
}

/// A value as a variable would have it.
fn value_of(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Integer(_) => Err("must be a decimal number"),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(is) => Ok(is.to_string()),
        DeValue::Array(values) => {
            let values = values.iter().map(|value| match value.get_ref() {
                DeValue::Array(_) => Err("must not be a list of lists"),
                value => value_of(value),
            });
            Ok(values.collect::<Result<Vec<_>, _>>()?.join(","))
        }
        DeValue::Datetime(_) => Err("must not be a date"),
        DeValue::Table(_) => Err("is a section: settings have no sections here, each stands as `name = value`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String, usize)> {
        parse(text).unwrap().into_iter().map(|setting| (setting.name, setting.value, setting.line)).collect()
    }

    #[test]
    fn each_line_is_a_setting() {
        let text = "# Where it listens.\nlisten = \"127.0.0.1:9000\"\n\nlanes = 4\ncompression = false\ncors_origins = [\n  \"https://a.example\",\n  \"https://b.example\",\n]\njwt_issuer = \"\"\n";
        let expected = [
            ("listen", "127.0.0.1:9000", 2),
            ("lanes", "4", 4),
            ("compression", "false", 5),
            ("cors_origins", "https://a.example,https://b.example", 6),
        ];
        assert_eq!(parsed(text), expected.map(|(name, value, line)| (name.to_owned(), value.to_owned(), line)));
        assert_eq!(parsed(""), []);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_line() {
        for (text, line, part) in [
            ("lanes = 4\nlisten = 127.0.0.1\n", 2, ""),
            ("lanes = 4\nlanes = 5\n", 2, "duplicate key"),
            ("[http]\nlisten = \"a\"\n", 1, "http is a section"),
            ("\nlanes = 0x10\n", 2, "decimal"),
            ("since = 2026-01-31\n", 1, "date"),
            ("a = [[1]]\n", 1, "list of lists"),
        ] {
            let (at, why) = parse(text).unwrap_err();
            assert!(at == line && why.contains(part), "{text}: {at} {why}");
        }
    }
}
