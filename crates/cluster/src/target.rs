//! Where a store is and how to be let in, from a URL.
//!
//!     etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/NAMESPACE][?OPTION=VALUE&...]
//!     postgresql://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?...]
//!     valkey://, redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER][?...]
//!
//! Invariant: a password is in a `Secret` only, which shows nothing of itself.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::failure::{Failure, Outcome};
use crate::name::escape;

/// Seconds without an answer after which a store counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// A password.
#[derive(Clone, Default)]
pub(crate) struct Secret(String);

impl Secret {
    /// Returns the password itself, for the one call that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// The stores there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Etcd,
    Postgres,
    Redis,
}

/// Certificates, as paths of PEM files; the system's authorities where there is no `authority`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) authority: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) key: Option<String>,
}

/// All that a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) scheme: Scheme,
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) user: Option<String>,
    pub(crate) password: Secret,
    /// A database's name or number; empty for etcd.
    pub(crate) database: String,
    /// Escaped.
    pub(crate) namespace: String,
    pub(crate) tls: Option<Tls>,
    /// How many replicas must have a grant before it counts (Redis and Valkey).
    pub(crate) replicas: u32,
    pub(crate) patience: Duration,
}

impl Target {
    /// Reads a URL; `options` are pairs that override what it says, `password` among them.
    pub(crate) fn parse(url: &str, options: &[(String, String)]) -> Outcome<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Failure::invalid(
                "a store's URL begins with etcd://, postgresql://, valkey:// or redis://",
            ));
        };
        let (kind, is_encrypted) = scheme_of(scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let (user, password) = user.map_or(("", ""), |user| user.split_once(':').unwrap_or((user, "")));
        let mut target = Self {
            scheme: kind,
            hosts: hosts
                .split(',')
                .map(|host| host_of(host, kind))
                .collect::<Outcome<_>>()?,
            user: Some(decode(user)).filter(|user| !user.is_empty()),
            password: Secret(decode(password)),
            database: String::new(),
            namespace: String::from("unsnarl"),
            tls: is_encrypted.then(Tls::default),
            replicas: 0,
            patience: PATIENCE,
        };
        target.place(&decode(path))?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (option, value) = pair.split_once('=').unwrap_or((pair, ""));
            target.set(option, &decode(value))?;
        }
        options
            .iter()
            .try_for_each(|(option, value)| target.set(option, value))?;
        Ok(target)
    }

    fn place(&mut self, path: &str) -> Outcome<()> {
        match self.scheme {
            Scheme::Etcd if !path.is_empty() => self.namespace = escape(path)?,
            Scheme::Etcd => {}
            Scheme::Redis if !path.is_empty() && path.parse::<i64>().is_err() => {
                return Err(Failure::invalid(
                    "the path of a valkey:// or redis:// URL is a database's number",
                ));
            }
            _ => path.clone_into(&mut self.database),
        }
        Ok(())
    }

    fn set(&mut self, option: &str, value: &str) -> Outcome<()> {
        match option {
            "namespace" => self.namespace = escape(value)?,
            "user" => self.user = Some(value.to_owned()),
            "password" => self.password = Secret(value.to_owned()),
            "tls" if matches!(value, "true" | "1" | "") => drop(self.tls.get_or_insert_default()),
            "tls" if matches!(value, "false" | "0") => self.tls = None,
            "tls" => return Err(Failure::invalid(format!("tls is true or false, not {value:?}"))),
            // libpq's words; a server's certificate is verified in all the modes that ask for TLS.
            "sslmode" if self.scheme == Scheme::Postgres => match value {
                "require" | "verify-ca" | "verify-full" => drop(self.tls.get_or_insert_default()),
                "disable" | "allow" | "prefer" => self.tls = None,
                _ => return Err(Failure::invalid(format!("no such sslmode: {value:?}"))),
            },
            "ca" => self.tls.get_or_insert_default().authority = Some(value.to_owned()),
            "cert" => self.tls.get_or_insert_default().certificate = Some(value.to_owned()),
            "key" => self.tls.get_or_insert_default().key = Some(value.to_owned()),
            "replicas" if self.scheme == Scheme::Redis => self.replicas = number(option, value)?,
            "timeout" => self.patience = seconds(value)?,
            _ => return Err(Failure::invalid(format!("no such option of a store's URL: {option}"))),
        }
        Ok(())
    }

    /// The hosts, for messages.
    pub(crate) fn place_words(&self) -> String {
        self.hosts
            .iter()
            .map(|(host, port)| format!("{host}:{port}"))
            .collect::<Vec<_>>()
            .join(",")
    }
}

fn scheme_of(word: &str) -> Outcome<(Scheme, bool)> {
    Ok(match word {
        "etcd" => (Scheme::Etcd, false),
        "etcds" => (Scheme::Etcd, true),
        "postgresql" | "postgres" => (Scheme::Postgres, false),
        "valkey" | "redis" => (Scheme::Redis, false),
        "valkeys" | "rediss" => (Scheme::Redis, true),
        _ => {
            let known = "etcd, etcds, postgresql, valkey, valkeys, redis and rediss";
            return Err(Failure::invalid(format!(
                "no store has the scheme {word:?}: there are {known}"
            )));
        }
    })
}

fn host_of(text: &str, scheme: Scheme) -> Outcome<(String, u16)> {
    let default = match scheme {
        Scheme::Etcd => 2379,
        Scheme::Postgres => 5432,
        Scheme::Redis => 6379,
    };
    // An IPv6 address stands in brackets: its colons are no port's.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let bad = || Failure::invalid(format!("no port: {:?}", port.unwrap_or_default()));
    let port = port.map_or(Ok(default), |port| port.parse().map_err(|_| bad()))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((
        if host.is_empty() {
            "localhost".to_owned()
        } else {
            decode(host)
        },
        port,
    ))
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn number(option: &str, value: &str) -> Outcome<u32> {
    value
        .parse()
        .map_err(|_| Failure::invalid(format!("{option} is a number, not {value:?}")))
}

fn seconds(value: &str) -> Outcome<Duration> {
    let seconds = value
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.01..=86_400.0).contains(seconds));
    let bad = || Failure::invalid(format!("timeout is 0.01 to 86400 seconds, not {value:?}"));
    seconds.map(Duration::from_secs_f64).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::{Scheme, Target};

    fn target(url: &str) -> Target {
        Target::parse(url, &[]).expect("a good URL")
    }

    #[test]
    fn a_url_names_hosts_and_a_namespace() {
        let target = target("etcd://host1:2379,host2/jobs");
        assert_eq!(target.scheme, Scheme::Etcd);
        assert_eq!(target.hosts, [("host1".to_owned(), 2379), ("host2".to_owned(), 2379)]);
        assert_eq!(target.namespace, "jobs");
    }

    #[test]
    fn the_password_is_decoded_and_not_shown() {
        let target = target("postgresql://me:s%40cret@[::1]:5433/db?namespace=a%2Fb&timeout=1.5");
        assert_eq!(target.password.reveal(), "s@cret");
        assert!(!format!("{target:?}").contains("cret"));
        assert_eq!((target.hosts[0].0.as_str(), target.hosts[0].1), ("::1", 5433));
        assert_eq!((target.database.as_str(), target.namespace.as_str()), ("db", "a%2Fb"));
        assert_eq!(target.patience.as_millis(), 1500);
    }

    #[test]
    fn an_authority_stays_whatever_follows_it() {
        let target = target("postgresql://x/y?ca=/authority.pem&sslmode=verify-full");
        assert_eq!(target.tls.expect("TLS").authority.as_deref(), Some("/authority.pem"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_the_password() {
        for url in [
            "nothing",
            "ftp://x",
            "redis://x/jobs",
            "etcd://x:port",
            "etcd://u:pw@x?foo=1",
            "redis://x?timeout=0",
            "redis://x?timeout=nan",
            "redis://x?tls=maybe",
            "postgresql://x/y?sslmode=requier",
        ] {
            let failure = Target::parse(url, &[]).expect_err("a bad URL");
            assert!(!failure.message.contains("pw"), "{failure}");
        }
    }
}
