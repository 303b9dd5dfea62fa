use serde_json::Value;

use super::{
    filesystem::{Effect, path_text},
    network::domains,
    read::{Object, Unknown, boolean, list, non_empty, parsed, text},
    report::{Place, Report},
};
use crate::domain::{DomainPattern, ListKind};

/// `credentials`: what the command must not learn the real values of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", deny_unknown_fields))]
pub struct Credentials {
    /// Environment variables.
    #[cfg_attr(test, schemars(default))]
    pub env_vars: Vec<EnvVar>,
    /// Files and folders.
    #[cfg_attr(test, schemars(default))]
    pub files: Vec<CredentialFile>,
    /// Put real values into requests that travel in clear text, too.
    #[cfg_attr(test, schemars(default))]
    pub allow_plaintext_inject: bool,
    /// Which masked variables belong together as one AWS credential.
    #[cfg_attr(test, schemars(default))]
    pub aws_pairs: Vec<AwsPair>,
    /// What becomes of AWS requests that cannot be signed again.
    #[cfg_attr(test, schemars(default))]
    pub sigv4: SigV4,
}

/// How a credential is kept from the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub enum CredentialMode {
    /// It is not there.
    Deny,
    /// A stand-in is there, for which the proxy puts the real value in.
    Mask,
}

/// An entry of `credentials.envVars`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", deny_unknown_fields))]
pub struct EnvVar {
    /// The variable.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$")))]
    pub name: String,
    /// How it is kept.
    pub mode: CredentialMode,
    /// Hosts that get the real value; `network.allowedDomains` if absent.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub inject_hosts: Option<Vec<DomainPattern>>,
    /// A pattern whose first group is the secret part of the value.
    pub extract: Option<String>,
}

/// An entry of `credentials.files`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", deny_unknown_fields))]
pub struct CredentialFile {
    /// Its path, in the grammar of `filesystem.denyRead`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: String,
    /// How it is kept.
    pub mode: CredentialMode,
    /// Hosts that get the real content; `network.allowedDomains` if absent.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub inject_hosts: Option<Vec<DomainPattern>>,
    /// A pattern whose first group is the secret part of the content.
    pub extract: Option<String>,
}

/// An entry of `credentials.awsPairs`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", deny_unknown_fields))]
pub struct AwsPair {
    /// The variable with the access key.
    pub access_key_id_var: String,
    /// The variable with the secret key.
    pub secret_access_key_var: String,
    /// The variable with the session token.
    pub session_token_var: Option<String>,
}

/// `credentials.sigv4`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase", deny_unknown_fields))]
pub struct SigV4 {
    /// Uploads signed chunk by chunk.
    pub streaming: Option<String>,
    /// Presigned URLs.
    pub presigned: Option<String>,
    /// Signatures of the asymmetric kind.
    pub sigv4a: Option<String>,
}

impl Credentials {
    pub(super) fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let credentials = Self {
            env_vars: o.optional("envVars", list(EnvVar::read)).unwrap_or_default(),
            files: o.optional("files", list(CredentialFile::read)).unwrap_or_default(),
            allow_plaintext_inject: o.optional("allowPlaintextInject", boolean).unwrap_or_default(),
            aws_pairs: o.optional("awsPairs", list(AwsPair::read)).unwrap_or_default(),
            sigv4: o.optional("sigv4", SigV4::read).unwrap_or_default(),
        };
        // Withholding nothing would be the worst way to not support an entry.
        for (key, asked) in
            [("envVars", !credentials.env_vars.is_empty()), ("files", !credentials.files.is_empty())]
        {
            if asked {
                o.error_at(key, "not enforced yet by this release, so nothing is run; take the entries out");
            }
        }
        o.finish(Unknown::Refused);
        Some(credentials)
    }
}

impl CredentialMode {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "deny" => Ok(Self::Deny),
            "mask" => Ok(Self::Mask),
            _ => Err("expected `deny` or `mask`"),
        }
    }
}

impl EnvVar {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let name = o.required("name", parsed(variable_name));
        let mode = o.required("mode", parsed(CredentialMode::parse));
        let inject_hosts = o.optional("injectHosts", domains(ListKind::Allowed));
        let extract = o.optional("extract", non_empty);
        o.finish(Unknown::Refused);
        Some(Self { name: name?, mode: mode?, inject_hosts, extract })
    }
}

impl CredentialFile {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let path = o.required("path", path_text(Effect::Deny, false));
        let mode = o.required("mode", parsed(CredentialMode::parse));
        let inject_hosts = o.optional("injectHosts", domains(ListKind::Allowed));
        let extract = o.optional("extract", non_empty);
        o.finish(Unknown::Refused);
        Some(Self { path: path?, mode: mode?, inject_hosts, extract })
    }
}

impl AwsPair {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let access = o.required("accessKeyIdVar", parsed(variable_name));
        let secret = o.required("secretAccessKeyVar", parsed(variable_name));
        let session_token_var = o.optional("sessionTokenVar", parsed(variable_name));
        o.finish(Unknown::Refused);
        Some(Self { access_key_id_var: access?, secret_access_key_var: secret?, session_token_var })
    }
}

impl SigV4 {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let sigv4 = Self {
            streaming: o.optional("streaming", text),
            presigned: o.optional("presigned", text),
            sigv4a: o.optional("sigv4a", text),
        };
        o.finish(Unknown::Refused);
        Some(sigv4)
    }
}

fn variable_name(text: &str) -> Result<String, &'static str> {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.into())
    } else {
        Err("expected the name of an environment variable: letters, digits and _, no digit first")
    }
}
