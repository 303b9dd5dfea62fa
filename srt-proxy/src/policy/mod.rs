//! One value that answers all three questions (where, what, where really) for a session.
//!
//! Where its parts come from and how they combine is decided in this folder and nowhere else. There are three
//! combinations: the hello of a decider alone ([`Policy::from_hello`]), settings alone, and settings together with a
//! decider ([`SettingsPolicies`]).

mod from_hello;
mod from_settings;
mod hosts;
mod termination;

use srt_shared::field_name::FieldNameSet;
use srt_shared::settings::AmbiguousTarget;

use crate::decider::Link;
use crate::dial::Guard;

pub use from_settings::{Decider, SettingsError, SettingsPolicies};
pub use hosts::HostRules;
pub use termination::{Termination, TerminationError};

/// What one session may do.
#[derive(Debug)]
pub struct Policy {
    /// Question one: may anything go to this host and port?
    pub hosts: HostRules,
    /// Question two: who is asked about each request, if anybody is.
    pub decider: Option<Link>,
    /// Question three: which addresses may be dialled.
    pub guard: Guard,
    /// Which tunnels are looked into.
    pub termination: Termination,
    /// Whether tunnels that nobody looks into, SOCKS among them, are let through after the first and third question.
    pub opaque_tunnels: bool,
    /// Whether `Host`, server name and authority must name the host that is dialled.
    pub host_match: bool,
    /// Whether TRACE and TRACK are refused. They would echo what a decider has set.
    pub refuse_trace: bool,
    /// Whether header sets may travel in cleartext.
    pub plaintext_header_set: bool,
    /// What becomes of a path that names another one once normalised.
    pub ambiguous_target: AmbiguousTarget,
    /// Whether a target with a fragment or with two slashes at the beginning of its path is refused, whatever becomes of
    /// the other ambiguous ones.
    pub refuse_odd_targets: bool,
    /// Response headers never passed back.
    pub strip: FieldNameSet,
}

impl Policy {
    /// Whether it comes from settings. A decider alone is asked about requests, which SOCKS has none of.
    pub fn has_settings(&self) -> bool {
        self.hosts.has_settings()
    }
}
