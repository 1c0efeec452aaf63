//! The pages of the reference that follow from the code. To add one: a function that makes it, and
//! a line in `pages`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs};

use clap::{Arg, Command, CommandFactory as _};
use headmark::app::cli::Cli;
use headmark::base::error::{Code, Problem};
use headmark::maintenance::user_export;
use serde_json::Value;

use super::{assert_none, files, root};

const WIDTH: usize = 100;
const NOTE: &str = "<!-- Written by `make docs` from the code. Edit the code, not this page. -->\n\n";

/// The generated pages, by path.
fn pages() -> [(&'static str, String); 5] {
    [
        ("docs/reference/settings.md", settings()),
        ("docs/reference/command-line.md", command_line()),
        ("docs/reference/routes.md", routes()),
        ("docs/reference/errors.md", errors()),
        ("docs/reference/export.md", export()),
    ]
}

#[test]
fn the_generated_pages_are_what_the_code_says() {
    let is_writing = env::var_os("WRITE_DOCS").is_some();
    let mut stale = Vec::new();
    for (path, made) in pages() {
        let made = format!("{NOTE}{}\n", made.trim_end());
        let file = root().join(path);
        if is_writing {
            fs::write(&file, &made).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != made {
            stale.push(path.to_owned());
        }
    }
    assert_none("pages that differ from the code (run `make docs` and look at the difference)", &stale);
}

/// Code between backticks; nothing for nothing.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A text as a cached head of a table.
fn cached_head(text: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").replace('|', "\\|").trim_end_matches('.').to_owned()
}

/// A text with its options, variables and patterns between backticks, filled to the width.
fn paragraphs(text: &str) -> String {
    let mut page = String::new();
    for paragraph in text.split("\n\n") {
        let (mut column, mut is_code) = (0, false);
        for word in paragraph.split_whitespace() {
            let was_code = is_code;
            is_code ^= word.matches('`').count() % 2 == 1;
            let bare = word.trim_end_matches(['.', ',', ';', ':', ')']).trim_start_matches('(');
            let is_variable = bare.contains('_') && bare.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            let is_name = bare.starts_with("--") || is_variable || bare.contains("[,");
            let word = if is_name && !was_code && !word.contains('`') { word.replacen(bare, &code(bare), 1) } else { word.to_owned() };
            if column > 0 && column + 1 + word.chars().count() > WIDTH {
                page.push('\n');
                column = 0;
            }
            if column > 0 {
                page.push(' ');
                column += 1;
            }
            column += word.chars().count();
            page += &word;
        }
        page += "\n\n";
    }
    page
}

fn variable(arg: &Arg) -> String {
    arg.get_env().map(|name| name.to_str().unwrap().to_owned()).unwrap_or_default()
}

fn default(arg: &Arg) -> String {
    let values: Vec<&str> = arg.get_default_values().iter().map(|value| value.to_str().unwrap()).collect();
    let is_flag = values == ["false"] && !arg.get_action().takes_values();
    if is_flag { String::new() } else { values.join(",") }
}

/// What an argument is for, with the values that it takes where they are few.
fn help(arg: &Arg) -> String {
    let help = cached_head(&arg.get_long_help().or(arg.get_help()).unwrap().to_string());
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| code(value.get_name())).collect();
    let is_told = values.is_empty() || values == ["`true`", "`false`"] || values.iter().all(|value| help.contains(value));
    if is_told { help } else { format!("{help}. One of {}", values.join(", ")) }
}

/// The arguments of a command that have a section, by section.
fn sections(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut sections: Vec<(String, Vec<&Arg>)> = Vec::new();
    for arg in command.get_arguments().filter(|arg| arg.get_env().is_some()) {
        let heading = arg.get_help_heading().unwrap_or_else(|| panic!("{} has no next_help_heading", arg.get_id()));
        match sections.iter_mut().find(|(section, _)| section == heading) {
            Some((_, args)) => args.push(arg),
            None => sections.push((heading.to_owned(), vec![arg])),
        }
    }
    sections
}

fn settings() -> String {
    let mut page = "# Settings\n\n".to_owned();
    page += "An option overrides its variable, and a variable overrides the settings file: `headmark.toml` in the working directory, or the \
             one that `--config` names. There, a setting has the name of its option, with underscores:\n\n";
    page += "```toml\nlisten = \"127.0.0.1:8080\"\nservice_keys_file = \"/etc/headmark/keys\"\ncors_origins = [\"https://app.example\"]\n```\n\n";
    page += "- `headmark config check` checks the settings, and `headmark config print` shows each with where it comes from, without secrets.\n";
    page += "- A name in the settings file that no setting has stops the program, too.\n";
    page += "- A `HEADMARK_…` variable that no setting has stops the program and names the nearest setting.\n";
    page += "- A setting and its `_FILE` may not both be set. The last line break of the file does not count.\n";
    page += "- [Limits](limits.md) lists every bound, also those without a setting.\n";
    for (section, args) in sections(&Cli::command()) {
        let _ = write!(page, "\n## {section}\n\n| variable | option | default | meaning |\n| --- | --- | --- | --- |\n");
        for arg in args {
            let option = format!("--{}", arg.get_long().unwrap());
            let cached_heads = [code(&variable(arg)), code(&option), code(&default(arg)), help(arg)];
            let _ = writeln!(page, "| {} |", cached_heads.join(" | "));
        }
    }
    page
}

fn command_line() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut page = "# Command line\n\n".to_owned();
    page += "`headmark` without a command serves. `headmark help import follows` prints the text of a command.\n\n";
    let settings: BTreeMap<String, String> =
        sections(&cli).into_iter().flat_map(|(_, args)| args).map(|arg| (variable(arg), default(arg))).collect();
    for command in cli.get_subcommands_mut() {
        command_page(command, "headmark", &settings, &mut page);
    }
    page
}

/// A command with its arguments, and then its subcommands.
fn command_page(command: &mut Command, parent: &str, settings: &BTreeMap<String, String>, page: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    if command.get_name() == "help" {
        return;
    }
    let _ = write!(page, "## {name}\n\n");
    *page += &paragraphs(&command.get_long_about().or(command.get_about()).unwrap().to_string());
    let has_subcommands = command.get_subcommands().any(|command| command.get_name() != "help");
    if !has_subcommands {
        let usage = command.render_usage().to_string();
        let _ = write!(page, "```text\n{}\n```\n\n", usage.trim_start_matches("Usage: "));
    }
    let is_setting = |arg: &Arg| settings.get(&variable(arg)).is_some_and(|usual| *usual == default(arg));
    let own = command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()) && !is_setting(arg));
    let own: Vec<&Arg> = own.collect();
    if !own.is_empty() {
        *page += "| argument | variable | default | meaning |\n| --- | --- | --- | --- |\n";
        for arg in own {
            let name = arg.get_long().map_or_else(|| format!("<{}>", arg.get_id().as_str().to_uppercase()), |long| format!("--{long}"));
            let cached_heads = [code(&name), code(&variable(arg)), code(&default(arg)), help(arg)];
            let _ = writeln!(page, "| {} |", cached_heads.join(" | "));
        }
        page.push('\n');
    }
    let mut taken: Vec<String> = Vec::new();
    for arg in command.get_arguments().filter(|arg| is_setting(arg)) {
        let heading = arg.get_help_heading().unwrap();
        let link = format!("[{heading}](settings.md#{})", heading.to_lowercase().replace(' ', "-"));
        if !taken.contains(&link) {
            taken.push(link);
        }
    }
    if command.get_name() == "serve" {
        *page += "It takes all [settings](settings.md).\n\n";
    } else if !taken.is_empty() {
        let _ = write!(page, "It also takes settings of these sections: {}.\n\n", taken.join(", "));
    }
    for command in command.get_subcommands_mut() {
        command_page(command, &name, settings, page);
    }
}

/// Who may call an operation: what its handler asks for.
fn caller(sources: &[String], id: &str, operation: &Value) -> &'static str {
    if operation["security"].as_array().is_some_and(|schemes| schemes.iter().all(|scheme| scheme.as_object().unwrap().is_empty())) {
        return "all";
    }
    // A handler is no method, so its line is not indented.
    let starts = ["", "pub ", "pub(crate) ", "pub(super) "].map(|visible| format!("\n{visible}async fn {id}("));
    let rest = starts.iter().find_map(|start| sources.iter().find_map(|source| source.split_once(start.as_str()))).map(|(_, rest)| rest);
    let parameters = rest.unwrap_or_else(|| panic!("no handler is called {id}")).split(" -> ").next().unwrap();
    let types: BTreeSet<&str> = parameters.split(|c: char| !c.is_alphanumeric()).collect();
    let asks = |extractor: &str| types.contains(extractor);
    match () {
        () if asks("Service") => "service",
        () if asks("GroupPath") => "member",
        () if asks("UserPath") || asks("PolledUser") => "user",
        () if asks("AnyUserPath") || asks("LivingCaller") || asks("Caller") => "any",
        () => panic!("{id} asks for no caller"),
    }
}

fn routes() -> String {
    let document: Value = serde_json::from_str(&headmark::app::router::openapi_json().unwrap()).unwrap();
    let sources: Vec<String> = files("src").iter().map(|path| fs::read_to_string(root().join(path)).unwrap()).collect();
    let mut page = "# Routes\n\n".to_owned();
    page += "The document at `/openapi.json` has every field. `/docs` is a page to try the routes.\n\n";
    page += "**Who** may call:\n\n";
    page += "- `service`: a service key.\n";
    page += "- `user`: the user in the path, or a service key.\n";
    page += "- `member`: a member of the group, or a service key. Only the sender of a message may recall it, or\n";
    page += "  see who has read it.\n";
    page += "- `any`: every caller with credentials. Some of these routes show less to a stranger, or refuse one.\n";
    page += "- `all`: needs no credentials.\n\n";
    page += "**Takes**, beside parameters of the query:\n\n";
    page += "- `ETag`: [a poll](../guide/clients.md): answers with an entity tag, and takes `If-None-Match`.\n";
    page += "- `key`: [an `Idempotency-Key`](../guide/backends.md#send-a-key-with-each-write).\n";
    page += "- `async`: [`Prefer: respond-async`](../guide/backends.md#asynchronous-writes).\n";
    for tag in document["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        let _ = write!(page, "\n## {name}\n\n{}\n\n", tag["description"].as_str().unwrap());
        page += "| route | who | what | takes | success |\n| --- | --- | --- | --- | --- |\n";
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                if operation["tags"][0] == name {
                    let id = operation["operationId"].as_str().unwrap();
                    let who = caller(&sources, id, operation);
                    let what = cached_head(operation["summary"].as_str().unwrap());
                    let route = code(&format!("{} {path}", method.to_uppercase()));
                    let _ = writeln!(page, "| {route} | {who} | {what} | {} | {} |", takes(operation), successes(operation));
                }
            }
        }
    }
    page
}

/// The parameters of an operation that are not in its path.
fn takes(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let names = parameters.filter_map(|parameter| match (parameter["in"].as_str()?, parameter["name"].as_str()?) {
        ("query", name) => Some(code(&format!("?{name}"))),
        ("header", "If-None-Match") => Some(code("ETag")),
        ("header", "Idempotency-Key") => Some(code("key")),
        ("header", "Prefer") => Some(code("async")),
        ("header", other) => panic!("the header {other} needs a name here"),
        _ => None,
    });
    names.collect::<Vec<_>>().join(", ")
}

fn successes(operation: &Value) -> String {
    let statuses = operation["responses"].as_object().unwrap().keys();
    statuses.filter(|status| status.starts_with('2')).cloned().collect::<Vec<_>>().join(", ")
}

fn errors() -> String {
    let document: Value = serde_json::from_str(&headmark::app::router::openapi_json().unwrap()).unwrap();
    let mut page = "# Error codes\n\n".to_owned();
    page += "An error is `application/problem+json` (RFC 9457) with `type`, `status`, `title`, `detail` and\n";
    page += "`code`. Programs look at `code`: it is stable. `detail` says what went wrong this time. Invalid input\n";
    page += "adds `errors`, each with a `pointer` to the value and a `detail`.\n\n";
    page += "Codes with *retry* come with `Retry-After`, in seconds.\n\n";
    page += "| code | status | title | |\n| --- | --- | --- | --- |\n";
    let codes: Vec<Code> = serde_json::from_value(document["components"]["schemas"]["Code"]["enum"].clone()).unwrap();
    for code in codes {
        let retry = if Problem::new(code, "").retry_after_s.is_some() { "retry" } else { "" };
        let _ = writeln!(page, "| `{}` | {} | {} | {retry} |", code.as_str(), code.status().as_u16(), code.title());
    }
    page
}

fn export() -> String {
    let mut page = "# Export of a user\n\n".to_owned();
    page += "`GET /v1/users/{user}/export` streams everything that is kept about a user, for a service. Each line\n";
    page += "is a JSON object with a `kind`, in the order of this page. Ids are decimal strings, times RFC 3339\n";
    page += "in UTC. A field that says nothing (no time, an empty text) is left out.\n\n";
    page += "The last line is `{\"kind\":\"end\",\"lines\":n}`, where `n` counts the lines before it. An export\n";
    page += "without it was cut off: export again. For a user never seen it is the only line. An export is read\n";
    page += "page by page, so it is not one snapshot.\n\n";
    page += "```sh\ncurl -sN -H \"Authorization: Bearer $KEY\" http://127.0.0.1:8080/v1/users/42/export > 42.ndjson\n";
    page += "tail -n 1 42.ndjson   # {\"kind\":\"end\",\"lines\":57}\n```\n\n";
    page += "It has what the user may read, and what is kept beside that. It contains who follows the user, also\n";
    page += "in secret. It never contains who blocks or mutes the user, nor how many do.\n";
    let mut told = BTreeSet::new();
    for part in user_export::parts() {
        if !told.insert(part.kind) {
            continue;
        }
        let _ = write!(page, "\n## {}\n\n{}.\n\n| field | type | |\n| --- | --- | --- |\n", part.kind, part.about);
        for field in part.fields {
            let _ = writeln!(page, "| `{}` | {} | {} |", field.name, field.shown.name(), field.about.replace('|', "\\|"));
        }
    }
    page += "\n## What is not in it\n\n| table | why |\n| --- | --- |\n";
    for (table, why) in user_export::NOT_EXPORTED {
        let _ = writeln!(page, "| `{table}` | {why} |");
    }
    page += "\nOf tables that are in it, these rows that name the user are not:\n\n| table | why |\n| --- | --- |\n";
    for (table, why) in user_export::ROWS_LEFT_OUT {
        let _ = writeln!(page, "| `{table}` | {why} |");
    }
    page += "\nNor are these columns:\n\n| column | why |\n| --- | --- |\n";
    for (column, why) in user_export::LEFT_OUT {
        let _ = writeln!(page, "| `{column}` | {why} |");
    }
    page
}
