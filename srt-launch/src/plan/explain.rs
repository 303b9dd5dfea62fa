//! `--explain`: a plan for people and, as JSON, for programs. Every line names the entry or the rule that is its
//! reason.

use std::{ffi::OsStr, fmt, path::Path};

use serde_json::{Value, json};

use super::model::{Inputs, MountKind, Network, Plan, ProcMode, Reason};

/// A plan in a form to be read; [`fmt::Display`] is the text, [`Explanation::json`] the JSON.
#[derive(Debug, Clone)]
pub struct Explanation<'a> {
    plan: &'a Plan,
    inputs: &'a Inputs,
}

/// One path, and what is to be said about it.
struct Line<'a> {
    path: &'a Path,
    remark: String,
    why: &'a Reason,
}

impl<'a> Explanation<'a> {
    /// Explains a plan that was computed from these inputs.
    pub fn new(plan: &'a Plan, inputs: &'a Inputs) -> Self {
        Self { plan, inputs }
    }

    /// The same as one JSON object.
    pub fn json(&self) -> Value {
        let paths = |lines: Vec<Line<'_>>| -> Value {
            lines
                .into_iter()
                .map(|line| {
                    let mut value = json!({"path": line.path.to_string_lossy(), "why": why(line.why)});
                    if !line.remark.is_empty() {
                        value["remark"] = line.remark.into();
                    }
                    value
                })
                .collect()
        };
        let (set, unset) = self.environment();
        json!({
            "cwd": self.plan.cwd.to_string_lossy(),
            "writable": paths(self.writable()),
            "notWritable": paths(self.not_writable()),
            "notReadable": paths(self.not_readable()),
            "readable": paths(self.readable()),
            "pinned": paths(self.pinned()),
            "placeholders": self.plan.placeholders.iter().map(|p| json!({
                "path": p.path.to_string_lossy(), "directory": p.directory, "mode": format!("{:04o}", p.mode),
            })).collect::<Value>(),
            "provided": self.plan.provided.iter().map(|p| json!({
                "name": p.name, "over": p.bind_over.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            })).collect::<Value>(),
            "environment": {
                "set": set.into_iter().map(|(name, value)| (name, value.into())).collect::<serde_json::Map<_, _>>(),
                "unset": unset,
            },
            "network": match self.plan.network { Network::None => "none", Network::Proxy => "proxy" },
            "proc": match self.plan.proc { ProcMode::Fresh => "fresh", ProcMode::FreshOrOuterReadOnly => "fresh, or the outer one read-only" },
            "refusedSystemCalls": self.plan.seccomp.rules.iter().map(|rule| format!("{rule:?}")).collect::<Vec<_>>(),
            "passedDescriptors": self.plan.pass_fds,
            "warnings": self.plan.warnings,
            "notes": self.plan.notes,
        })
    }

    fn writable(&self) -> Vec<Line<'a>> {
        let root = self.plan.root.writable.then(|| Line {
            path: Path::new("/"),
            remark: String::new(),
            why: &self.plan.root.why,
        });
        let mounts = self.lines(|kind| match kind {
            MountKind::Writable => Some(String::new()),
            MountKind::Reopen { source: _, writable: true } => Some("in a folder that cannot be read".into()),
            _ => None,
        });
        let mut lines: Vec<Line<'a>> = root.into_iter().chain(mounts).collect();
        for line in &mut lines {
            if self.plan.missing_temp_dir.as_deref() == Some(line.path) {
                line.remark = "is made".into();
            }
        }
        lines
    }

    fn not_writable(&self) -> Vec<Line<'a>> {
        let mut lines = self.lines(|kind| (*kind == MountKind::ReadOnly).then(String::new));
        for line in &mut lines {
            if self.plan.placeholders.iter().any(|placeholder| placeholder.path == line.path) {
                line.remark = "absent; cannot be made".into();
            }
        }
        lines
    }

    fn not_readable(&self) -> Vec<Line<'a>> {
        self.lines(|kind| match kind {
            MountKind::EmptyDir => Some("an empty folder of its own".into()),
            MountKind::EmptyFile => Some("an empty file".into()),
            _ => None,
        })
    }

    fn readable(&self) -> Vec<Line<'a>> {
        let lines = self.plan.mounts.iter().filter_map(|mount| match &mount.kind {
            MountKind::Reopen { source, writable: false } => {
                let remark =
                    if *source == mount.target { String::new() } else { format!("shows {source:?}") };
                Some(Line { path: &mount.target, remark, why: &mount.why })
            }
            _ => None,
        });
        lines.collect()
    }

    fn pinned(&self) -> Vec<Line<'a>> {
        self.lines(|kind| (*kind == MountKind::Pin).then(String::new))
    }

    fn lines(&self, remark: impl Fn(&MountKind) -> Option<String>) -> Vec<Line<'a>> {
        let line = |mount: &'a super::Mount| {
            Some(Line { path: &mount.target, remark: remark(&mount.kind)?, why: &mount.why })
        };
        self.plan.mounts.iter().filter_map(line).collect()
    }

    /// Variables that differ from the caller's. Values from the command line may be secrets and are not told.
    fn environment(&self) -> (Vec<(String, String)>, Vec<String>) {
        let edited = |name: &OsStr| self.inputs.env_edits.iter().any(|(edited, _)| edited == name);
        let set = self.plan.env.iter().filter(|&(name, value)| self.inputs.env.get(name) != Some(value));
        let set = set.map(|(name, value)| {
            let value =
                if edited(name) { "(set on the command line)".into() } else { value.to_string_lossy() };
            (name.to_string_lossy().into_owned(), value.into_owned())
        });
        let unset = self.inputs.env.keys().filter(|name| !self.plan.env.contains_key(*name));
        (set.collect(), unset.map(|name| name.to_string_lossy().into_owned()).collect())
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = match self.plan.network {
            Network::None => "none but a loopback of its own",
            Network::Proxy => "127.0.0.1:3128 inside leads to the proxy, which decides",
        };
        writeln!(f, "starts in: {}", shown(&self.plan.cwd.to_string_lossy()))?;
        writeln!(f, "network: {network}")?;
        section(f, "writable", self.writable())?;
        section(f, "not writable, though in something that is", self.not_writable())?;
        section(f, "not readable", self.not_readable())?;
        section(f, "readable, though in something that is not", self.readable())?;
        section(f, "cannot be renamed or removed, because of what lies in it or it leads to", self.pinned())?;
        if self.plan.provided.iter().any(|provided| !provided.bind_over.is_empty()) {
            writeln!(f, "replaced by a copy")?;
            for path in self.plan.provided.iter().flat_map(|provided| &provided.bind_over) {
                writeln!(f, "  {}", shown(&path.to_string_lossy()))?;
            }
        }
        let (set, unset) = self.environment();
        writeln!(f, "environment")?;
        for (name, value) in set {
            writeln!(f, "  {}={}", shown(&name), shown(&value))?;
        }
        for name in unset {
            writeln!(f, "  {} is taken out", shown(&name))?;
        }
        for (title, texts) in [("warnings", &self.plan.warnings), ("notes", &self.plan.notes)] {
            if !texts.is_empty() {
                writeln!(f, "{title}")?;
            }
            for text in texts {
                writeln!(f, "  {}", shown(text))?;
            }
        }
        Ok(())
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: Vec<Line<'_>>) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    let width = lines.iter().map(|line| line.path.as_os_str().len()).max().unwrap_or(0).min(60);
    for Line { path, remark, why } in lines {
        write!(f, "  {:width$}  {}", shown(&path.to_string_lossy()), shown(&why.to_string()))?;
        if !remark.is_empty() {
            write!(f, " ({remark})")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Text for a terminal, on one line: names of files are whatever an earlier command has made them.
fn shown(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

fn why(reason: &Reason) -> Value {
    match reason {
        Reason::Setting { key, entry } => json!({"key": key, "entry": entry}),
        Reason::Rule(rule) => json!({ "rule": rule }),
    }
}
