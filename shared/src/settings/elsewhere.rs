use serde_json::Value;

use super::{
    read::{Object, Unknown, absolute_path, boolean, list, number, parsed, text, wrong},
    report::{Place, Report},
};

/// Keys for other platforms, and for helper programs that this implementation does without. Checked as the
/// reference checks them, so that a file is valid for both or for neither, and then not used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Elsewhere {
    /// Not needed here.
    #[cfg_attr(test, schemars(regex(pattern = "^/")))]
    pub bwrap_path: Option<String>,
    /// Not needed here.
    #[cfg_attr(test, schemars(regex(pattern = "^/")))]
    pub socat_path: Option<String>,
    /// Not needed here.
    #[cfg_attr(test, schemars(regex(pattern = "^/")))]
    pub java_agent_jar_path: Option<String>,
    /// Not needed here.
    pub ripgrep: Option<Ripgrep>,
    /// Not needed here.
    pub seccomp: Option<SeccompHelper>,
    /// Only read on macOS.
    pub allow_pty: Option<bool>,
    /// Only read on macOS.
    pub allow_apple_events: Option<bool>,
    /// Only read on macOS.
    pub enable_weaker_network_isolation: Option<bool>,
    /// Only read on Windows.
    pub windows: Option<Windows>,
}

/// `ripgrep`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Ripgrep {
    /// The program.
    pub command: String,
    /// Its first arguments.
    pub args: Option<Vec<String>>,
    /// Its name for itself.
    pub argv0: Option<String>,
}

/// `seccomp`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct SeccompHelper {
    /// The program.
    pub apply_path: Option<String>,
    /// Its name for itself.
    pub argv0: Option<String>,
}

/// `windows`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Windows {
    /// Lowest and highest port of the proxies.
    pub proxy_port_range: Option<[u16; 2]>,
    /// A GUID.
    pub sublayer_guid: Option<String>,
    /// The helper program.
    pub srt_win: Option<SrtWin>,
}

/// `windows.srtWin`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct SrtWin {
    /// Its path.
    pub path: String,
}

impl Elsewhere {
    /// Takes its keys out of the top-level object.
    pub(super) fn read(o: &mut Object<'_>) -> Self {
        Self {
            bwrap_path: o.optional("bwrapPath", absolute_path),
            socat_path: o.optional("socatPath", absolute_path),
            java_agent_jar_path: o.optional("javaAgentJarPath", absolute_path),
            ripgrep: o.optional("ripgrep", Ripgrep::read),
            seccomp: o.optional("seccomp", SeccompHelper::read),
            allow_pty: o.optional("allowPty", boolean),
            allow_apple_events: o.optional("allowAppleEvents", boolean),
            enable_weaker_network_isolation: o.optional("enableWeakerNetworkIsolation", boolean),
            windows: o.optional("windows", Windows::read),
        }
    }
}

impl Ripgrep {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let command = o.required("command", text);
        let args = o.optional("args", list(text));
        let argv0 = o.optional("argv0", text);
        o.finish(Unknown::Ignored);
        Some(Self { command: command?, args, argv0 })
    }
}

impl SeccompHelper {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let helper = Self { apply_path: o.optional("applyPath", text), argv0: o.optional("argv0", text) };
        o.finish(Unknown::Ignored);
        Some(helper)
    }
}

impl Windows {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let windows = Self {
            proxy_port_range: o.optional("proxyPortRange", port_range),
            sublayer_guid: o.optional("sublayerGuid", parsed(guid)),
            srt_win: o.optional("srtWin", SrtWin::read),
        };
        o.finish(Unknown::Ignored);
        Some(windows)
    }
}

impl SrtWin {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let path = o.required("path", text);
        o.finish(Unknown::Ignored);
        Some(Self { path: path? })
    }
}

fn port_range(value: &Value, place: &Place, report: &mut Report) -> Option<[u16; 2]> {
    let wanted = "two ports, the lower one first, at most 64 apart";
    if value.as_array().is_none_or(|ports| ports.len() != 2) {
        return wrong(value, wanted, place, report);
    }
    let ports = list(number(1, u16::MAX.into()))(value, place, report)?;
    let &[low, high] = ports.as_slice() else { return None };
    if low > high || high - low > 64 {
        report.error(place, format!("expected {wanted}"));
        return None;
    }
    Some([u16::try_from(low).ok()?, u16::try_from(high).ok()?])
}

fn guid(text: &str) -> Result<String, &'static str> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths_fit = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    if lengths_fit && groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_hexdigit())) {
        Ok(text.into())
    } else {
        Err("expected a GUID, as in 01234567-89ab-cdef-0123-456789abcdef")
    }
}
