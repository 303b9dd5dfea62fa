use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    read::{Object, Reader, Unknown, boolean, list, wrong},
    report::{Place, Report},
};

/// `filesystem`: what may be read and written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Filesystem {
    /// Restrict nothing: everything may be read and written. The lists are then not used.
    #[cfg_attr(test, schemars(default))]
    pub disabled: bool,
    /// What may not be read.
    pub deny_read: Vec<PathEntry>,
    /// What may be read all the same, within `denyRead`.
    #[cfg_attr(test, schemars(default))]
    pub allow_read: Vec<PathEntry>,
    /// What may be written.
    pub allow_write: Vec<PathEntry>,
    /// What may not be written all the same, within `allowWrite`.
    pub deny_write: Vec<PathEntry>,
    /// Let `.git/config` be written; hooks stay protected.
    #[cfg_attr(test, schemars(default))]
    pub allow_git_config: bool,
}

/// One entry of a path list: a path or pattern, or a path that is never a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEntry {
    /// The path as written: absolute, relative to the working directory, or below `~`.
    pub path: String,
    /// Whether `*`, `?`, `[` and a final `/**` are part of the name.
    pub literal: bool,
}

/// What a path of the settings that starts with `~` names; `None` for every other path, and without a home.
pub fn in_home(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~')? {
        "" => home.map(Path::to_path_buf),
        rest => Some(home?.join(rest.strip_prefix('/')?.trim_start_matches('/'))),
    }
}

impl Filesystem {
    pub(super) fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let filesystem = Self {
            disabled: o.optional("disabled", boolean).unwrap_or_default(),
            deny_read: o.required("denyRead", paths(Effect::Deny)).unwrap_or_default(),
            allow_read: o.optional("allowRead", paths(Effect::Allow)).unwrap_or_default(),
            allow_write: o.required("allowWrite", paths(Effect::Allow)).unwrap_or_default(),
            deny_write: o.required("denyWrite", paths(Effect::Deny)).unwrap_or_default(),
            allow_git_config: o.optional("allowGitConfig", boolean).unwrap_or_default(),
        };
        o.finish(Unknown::Warned);
        Some(filesystem)
    }
}

/// Reads the text of a path and judges it.
pub(super) fn path_text(effect: Effect, literal: bool) -> impl Reader<String> {
    move |value: &Value, place: &Place, report: &mut Report| {
        let Some(path) = value.as_str() else {
            return wrong(value, "a path", place, report);
        };
        match judge(path, effect, literal) {
            Ok(()) => Some(path.into()),
            Err(fault) => {
                report.error(place, fault);
                None
            }
        }
    }
}

/// Whether a list takes away or gives: a deny that can match nothing is an error, an allow is only useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Deny,
    Allow,
}

fn paths(effect: Effect) -> impl Reader<Vec<PathEntry>> {
    list(move |value: &Value, place: &Place, report: &mut Report| match value {
        Value::Object(_) => {
            let mut o = Object::open(value, place, report)?;
            let path = o.required("path", path_text(effect, true));
            let literal = o.required("literal", is_true);
            o.finish(Unknown::Refused);
            literal.and(path).map(|path| PathEntry { path, literal: true })
        }
        Value::String(_) => {
            path_text(effect, false)(value, place, report).map(|path| PathEntry { path, literal: false })
        }
        other => wrong(other, r#"a path, or {"path": "…", "literal": true}"#, place, report),
    })
}

fn is_true(value: &Value, place: &Place, report: &mut Report) -> Option<()> {
    if value.as_bool() == Some(true) {
        return Some(());
    }
    report.error(place, "expected true: a path that is to be read as a pattern is written as a string");
    None
}

fn judge(path: &str, effect: Effect, literal: bool) -> Result<(), String> {
    if path.is_empty() {
        return Err("the path is empty".into());
    }
    if path.contains('\0') {
        return Err("the path has a NUL character".into());
    }
    if effect == Effect::Deny && !literal && path.ends_with('/') && path.contains(['*', '?', '[', ']']) {
        let shorter = path.trim_end_matches('/');
        return Err(format!(
            "the pattern {path:?} ends in a slash, so it can match nothing; write {shorter:?}, or add a ** \
             segment to match at any depth"
        ));
    }
    Ok(())
}

/// A string, or an object with a mark; serialised by hand nowhere, so described by hand here.
#[cfg(test)]
impl schemars::JsonSchema for PathEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PathEntry".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A path or pattern, or a path that is never a pattern.",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"path": {"type": "string", "minLength": 1}, "literal": {"const": true}},
                    "required": ["path", "literal"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
