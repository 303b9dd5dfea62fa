//! CAs made by the openssl program, and checks by programs that do not share our libraries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use srt_shared::{domain::Host, secret::Secret};
use tempfile::TempDir;

use super::{Authority, CaError};

/// A folder in which openssl works.
pub(super) struct Pki {
    dir: TempDir,
}

/// `basicConstraints` and the key identifiers come from openssl's own defaults.
pub(super) const KEY_USAGE: &str = "keyUsage=critical,keyCertSign,cRLSign";

impl Pki {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs openssl with blank-separated arguments, which must succeed.
    pub(super) fn openssl(&self, arguments: &str) -> String {
        self.openssl_with(arguments, &[])
    }

    /// The same with further arguments that may hold blanks.
    pub(super) fn openssl_with(&self, arguments: &str, further: &[&str]) -> String {
        let output = self.run("openssl", arguments.split_ascii_whitespace().chain(further.iter().copied()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments} {further:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn run<'a>(&self, program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        Command::new(program)
            .args(arguments)
            .current_dir(self.dir.path())
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Makes `NAME.key` (PKCS#8): `rsa:2048`, `P-256` or `P-384`.
    pub(super) fn make_key(&self, name: &str, kind: &str) {
        match kind.strip_prefix("rsa:") {
            Some(bits) => self
                .openssl(&format!("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:{bits} -out {name}.key")),
            None => self
                .openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{kind} -out {name}.key")),
        };
    }

    /// Makes `NAME.key` and the self-signed `NAME.pem`.
    pub(super) fn make_ca(&self, name: &str, kind: &str, subject: &str, extensions: &[&str]) {
        self.make_key(name, kind);
        let extensions: Vec<_> = extensions.iter().flat_map(|extension| ["-addext", extension]).collect();
        self.openssl_with(
            &format!("req -x509 -new -key {name}.key -out {name}.pem -days 3"),
            &[&["-utf8", "-subj", subject], &extensions[..]].concat(),
        );
    }

    /// Certificate and key of a CA in one text.
    pub(super) fn ca_text(&self, name: &str) -> String {
        self.read(&format!("{name}.pem")) + &self.read(&format!("{name}.key"))
    }

    pub(super) fn authority(&self, name: &str) -> Authority {
        authority(self.ca_text(name)).unwrap()
    }

    /// What `openssl verify -x509_strict` says of a chain, leaf first, for a host.
    pub(super) fn verify(&self, ca: &Path, chain: &[impl AsRef<[u8]>], host: &Host) -> Result<(), String> {
        let pem: Vec<_> = chain.iter().map(|der| to_pem(der.as_ref())).collect();
        self.write("leaf.pem", &pem[0]);
        self.write("rest.pem", pem[1..].concat());
        let identity = match host {
            Host::Name(name) => format!("-verify_hostname {name}"),
            Host::Addr(addr) => format!("-verify_ip {addr}"),
        };
        let untrusted = if pem.len() > 1 { "-untrusted rest.pem" } else { "" };
        let arguments =
            format!("verify -x509_strict -purpose sslserver {identity} -no-CApath {untrusted} -CAfile");
        // Its path may hold blanks.
        let ca = ca.to_str().unwrap();
        let output = self.run("openssl", arguments.split_ascii_whitespace().chain([ca, "leaf.pem"]));
        let text = [output.stdout, output.stderr].concat();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&text).into_owned()) }
    }
}

pub(super) fn authority(pem: String) -> Result<Authority, CaError> {
    Authority::from_pem(&Secret::from(pem))
}

pub(super) fn host(text: &str) -> Host {
    Host::from_bare(text).unwrap()
}

pub(super) fn to_pem(der: &[u8]) -> String {
    let text = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
