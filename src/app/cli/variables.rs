//! Refuses `HEADMARK_*` variables that no setting has. Otherwise a misspelt one would leave its
//! setting at the default, and a misspelt HEADMARK_SERVICE_KEYS would make an open server.

use std::collections::BTreeSet;
use std::ffi::OsString;

const PREFIX: &str = "HEADMARK_";

/// What `scripts/engines.sh` and `scripts/test-distributed.sh` set for tests and measurements. The
/// servers that these start inherit it.
const OF_ENGINES: [&str; 6] = [
    "HEADMARK_TEST_POSTGRES",
    "HEADMARK_TEST_DISTRIBUTED",
    "HEADMARK_TEST_REDIS",
    "HEADMARK_TEST_DIR",
    "HEADMARK_PG_BIN",
    "HEADMARK_PG_OWNER",
];

/// Checks the environment's variables against the settings of a command and its subcommands. No
/// value is ever shown: it may be a secret.
///
/// # Errors
/// A sentence for the operator for each unknown name.
pub(super) fn check(command: &clap::Command, variables: impl Iterator<Item = (OsString, OsString)>) -> Result<(), String> {
    let mut known: BTreeSet<String> = OF_ENGINES.map(str::to_owned).into();
    collect(command, &mut known);
    let unknown = variables.filter_map(|(name, value)| {
        let name = name.to_string_lossy();
        let ours = name.to_ascii_uppercase().starts_with(PREFIX);
        (ours && !known.contains(&*name) && !is_service_link(&name, &value.to_string_lossy())).then(|| fault(&name, &known))
    });
    let faults: Vec<String> = unknown.collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\nheadmark: ")) }
}

/// The variables of a command's settings.
fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(clap::Arg::get_env).map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| collect(command, known));
}

fn fault(name: &str, known: &BTreeSet<String>) -> String {
    let upper = name.to_ascii_uppercase();
    let settings = known.iter().filter(|known| !OF_ENGINES.contains(&known.as_str()));
    let nearest = super::names::nearest(&upper, settings.map(String::as_str));
    format!(
        "the environment has {name}, which is not a setting; the nearest is {nearest}. Correct it or unset it (`headmark --help` lists all)."
    )
}

/// Whether Kubernetes sets such a variable in every pod beside a Service whose name begins with
/// `headmark`: `HEADMARK_PORT`, `HEADMARK_SERVICE_HOST`, `HEADMARK_REDIS_PORT_6379_TCP_ADDR` and
/// the like. No setting has such a name.
fn is_service_link(name: &str, value: &str) -> bool {
    if name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
        return true;
    }
    let Some((_, port)) = name.rsplit_once("_PORT_") else {
        // `HEADMARK_LISTEN_PORT=8080` is somebody's mistake; `HEADMARK_PORT=tcp://10.0.0.1:8080` is
        // a link.
        return name.ends_with("_PORT") && value.contains("://");
    };
    let (number, protocol) = port.split_once('_').unwrap_or((port, ""));
    let protocol = protocol.split('_').next().unwrap_or_default();
    number.parse::<u16>().is_ok() && matches!(protocol, "TCP" | "UDP" | "SCTP")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn checked(names: &[&str]) -> Result<(), String> {
        check(&crate::app::cli::Cli::command(), names.iter().map(|name| (name.into(), "hush".into())))
    }

    #[test]
    fn unknown_variables_are_refused_with_the_nearest_setting() {
        for (name, nearest) in [
            ("HEADMARK_SERVICE_KEY", "HEADMARK_SERVICE_KEYS"),
            ("HEADMARK_SERVCIE_KEYS", "HEADMARK_SERVICE_KEYS"),
            ("headmark_service_keys", "HEADMARK_SERVICE_KEYS"),
            ("HEADMARK_JWT_SECRETS", "HEADMARK_JWT_SECRET"),
            ("HEADMARK_JWT_SECRET_FIEL", "HEADMARK_JWT_SECRET_FILE"),
            ("HEADMARK_RATELIMIT", "HEADMARK_RATE_LIMIT"),
        ] {
            let why = checked(&["PATH", name]).unwrap_err();
            assert!(!why.contains("hush"), "{why}");
            assert!(why.contains(name) && why.contains(&format!("the nearest is {nearest}.")), "{why}");
        }
        let both = checked(&["HEADMARK_LISTENING", "HEADMARK_LOGS"]).unwrap_err();
        assert!(both.contains("HEADMARK_LISTEN.") && both.contains("HEADMARK_LOG."), "{both}");
    }

    #[test]
    fn settings_of_every_command_and_the_variables_of_the_engines_are_known() {
        assert_eq!(checked(&["HEADMARK_LISTEN", "HEADMARK_ID_OFFSET", "HEADMARK_TEST_REDIS", "HEADMARK", "DATABASE_URL"]), Ok(()));
    }

    #[test]
    fn links_to_services_of_kubernetes_are_let_through_and_nothing_like_them() {
        let links = [
            "HEADMARK_SERVICE_HOST",
            "HEADMARK_SERVICE_PORT",
            "HEADMARK_SERVICE_PORT_HTTP",
            "HEADMARK_PORT_8080_TCP",
            "HEADMARK_PORT_8080_TCP_ADDR",
            "HEADMARK_PORT_8080_TCP_PORT",
            "HEADMARK_REDIS_SERVICE_HOST",
            "HEADMARK_REDIS_PORT_6379_TCP_PROTO",
        ];
        assert_eq!(checked(&links), Ok(()));
        let port = ["HEADMARK_PORT", "HEADMARK_REDIS_PORT"].map(|name| (name.into(), "tcp://10.0.0.1:8080".into()));
        assert_eq!(check(&crate::app::cli::Cli::command(), port.into_iter()), Ok(()));
        for other in ["HEADMARK_SERVICE_KEY", "HEADMARK_PORTS", "HEADMARK_PORT_NUMBER", "HEADMARK_LISTEN_PORT", "HEADMARK_SERVICE"] {
            assert!(checked(&[other]).is_err(), "{other}");
        }
    }
}
