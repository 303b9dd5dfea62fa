use std::{collections::BTreeMap, ffi::OsString, path::Path};

use super::{
    git::GitSetup,
    model::{Inputs, Network, Trust},
    temp_dir::TempDir,
    variables::{
        JAVA_PROXY_OPTIONS, PROXY, SSH_ARGUMENTS, TRUST_BUNDLE, TRUST_DIRECTORY, java_trust_options,
        names_a_proxy,
    },
};

/// Our own switches, which mean nothing to a command and would reach an `srt` inside.
const OWN: [&str; 1] = ["SRT_DEBUG"];

/// The command's whole environment: the caller's, less what leads nowhere inside, plus what tells programs where
/// they are.
pub(super) fn environment(
    inputs: &Inputs,
    cwd: &Path,
    temp_dir: Option<&TempDir>,
    git: &GitSetup,
) -> BTreeMap<OsString, OsString> {
    let mut env = inputs.env.clone();
    env.retain(|name, value| !OWN.iter().any(|own| name == own) && !names_a_proxy(name, value));
    let mut set = |name: &str, value: OsString| drop(env.insert(name.into(), value));
    set("SANDBOX_RUNTIME", "1".into());
    set("PWD", cwd.into());
    if let Some(temp_dir) = temp_dir {
        set("TMPDIR", temp_dir.path.clone().into());
        // zsh makes its here-documents from this, not from TMPDIR.
        set("TMPPREFIX", temp_dir.path.join("zsh").into());
    }
    if inputs.network == Network::Proxy {
        for (name, value) in PROXY {
            if let Some(value) = value {
                set(name, value.into());
            }
        }
        extend(&mut env, "JAVA_TOOL_OPTIONS", "", JAVA_PROXY_OPTIONS);
        extend(&mut env, "GIT_SSH_COMMAND", "ssh", SSH_ARGUMENTS);
    }
    git.add_to(&mut env);
    if let Some(trust) = &inputs.trust {
        trust_environment(&mut env, trust);
    }
    edit(&mut env, &inputs.env_edits);
    env
}

/// Points programs at the certificates to trust. Where a proxy only says when it is attached to that it terminates
/// TLS, this is done then; edits of the command line come after it.
pub fn trust_environment(env: &mut BTreeMap<OsString, OsString>, trust: &Trust) {
    for name in TRUST_BUNDLE {
        env.insert(name.into(), trust.bundle.clone().into());
    }
    if let Some(directory) = trust.bundle.parent() {
        env.insert(TRUST_DIRECTORY.into(), directory.into());
    }
    if let Some(store) = &trust.java_store {
        extend(env, "JAVA_TOOL_OPTIONS", "", &java_trust_options(store));
    }
}

/// The last word of the command line.
pub fn edit(env: &mut BTreeMap<OsString, OsString>, edits: &[(OsString, Option<OsString>)]) {
    for (name, value) in edits {
        match value {
            Some(value) => env.insert(name.clone(), value.clone()),
            None => env.remove(name),
        };
    }
}

/// Adds words to a variable, behind the caller's own or, where there are none, behind `default`.
fn extend(env: &mut BTreeMap<OsString, OsString>, name: &str, default: &str, words: &str) {
    let value = env.entry(name.into()).or_default();
    if value.is_empty() {
        value.push(default);
    }
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(words);
}
