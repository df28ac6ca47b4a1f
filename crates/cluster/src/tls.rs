//! TLS for each of the stores: the system's authorities, or one given by a PEM file, and a certificate of ours if asked.
//!
//! Invariant: a server's certificate and name are always verified; there is no option not to.

use std::fs;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::failure::{Failure, Outcome, chain};
use crate::target::Tls;

fn read(path: &str) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::refused(format!("cannot read {path}: {error}")))
}

fn roots(paths: &Tls) -> Outcome<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &paths.authority else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(&read(path)?) {
        let certificate =
            certificate.map_err(|error| Failure::refused(format!("no certificate in {path}: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| Failure::refused(format!("no certificate in {path}: {error}")))?;
    }
    Ok(roots)
}

/// The certificate and key that we show, if both are given.
fn own(paths: &Tls) -> Outcome<Option<(&str, &str)>> {
    match (&paths.certificate, &paths.key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        _ => Err(Failure::invalid("cert and key are given together or not at all")),
    }
}

/// For PostgreSQL.
pub(crate) fn for_postgres(paths: &Tls) -> Outcome<ClientConfig> {
    let provider = rustls::crypto::ring::default_provider();
    let builder = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::refused(chain(&error)))?
        .with_root_certificates(roots(paths)?);
    let Some((certificate, key)) = own(paths)? else {
        return Ok(builder.with_no_client_auth());
    };
    let bad = |error: &dyn std::fmt::Display| Failure::refused(format!("no certificate or key: {error}"));
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(&error))?;
    let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| bad(&error))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| bad(&error))
}

/// For Redis and Valkey.
pub(crate) fn for_redis(paths: &Tls) -> Outcome<redis::TlsCertificates> {
    let own = own(paths)?;
    let root_cert = paths.authority.as_deref().map(read).transpose()?;
    let client_tls = own
        .map(|(certificate, key)| {
            Ok::<_, Failure>(redis::ClientTlsConfig {
                client_cert: read(certificate)?,
                client_key: read(key)?,
            })
        })
        .transpose()?;
    Ok(redis::TlsCertificates { client_tls, root_cert })
}

/// For etcd.
pub(crate) fn for_etcd(paths: &Tls) -> Outcome<tonic::transport::ClientTlsConfig> {
    use tonic::transport::{Certificate, ClientTlsConfig, Identity};
    let mut config = ClientTlsConfig::new();
    config = match &paths.authority {
        Some(path) => config.ca_certificate(Certificate::from_pem(read(path)?)),
        None => config.with_native_roots(),
    };
    Ok(match own(paths)? {
        Some((certificate, key)) => config.identity(Identity::from_pem(read(certificate)?, read(key)?)),
        None => config,
    })
}
