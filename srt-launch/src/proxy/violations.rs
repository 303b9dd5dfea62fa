//! The report at the end: what the proxy refused while the command ran.

use std::collections::{BTreeMap, HashSet};

use srt_shared::event::{Event, EventKind, clean_reason};

use super::news::Told;
use crate::limits::MAX_REPORT_LINES;

/// `ignoreViolations`, as far as it concerns one command.
#[derive(Debug, Clone, Default)]
pub struct Ignored {
    texts: Vec<String>,
}

impl Ignored {
    /// The texts listed for `*`, and for every key that occurs in the command.
    pub fn of_command(settings: &BTreeMap<String, Vec<String>>, command: &str) -> Self {
        let applies = |key: &String| key == "*" || command.contains(key.as_str());
        let texts = settings.iter().filter(|(key, _)| applies(key)).flat_map(|(_, texts)| texts.clone());
        Self { texts: texts.collect() }
    }

    fn covers(&self, line: &str) -> bool {
        self.texts.iter().any(|text| !text.is_empty() && line.contains(text.as_str()))
    }
}

/// The text for people and models; `None` when there is nothing to say. Each refusal is told once, however often a
/// program has tried. Each line ends with the name of the sandbox, if it has one: the reports of parallel jobs come to
/// one terminal, and a line may be read by itself.
pub fn report(told: &Told, ignored: &Ignored, name: Option<&str>) -> Option<String> {
    let mut seen = HashSet::new();
    let mut lines: Vec<String> = told
        .events
        .iter()
        .filter(|event| event.event == EventKind::Refused)
        .map(line)
        .filter(|line| !ignored.covers(line) && seen.insert(line.clone()))
        .collect();
    let more = lines.len().saturating_sub(MAX_REPORT_LINES) + told.unlisted;
    lines.truncate(MAX_REPORT_LINES);
    if more > 0 {
        lines.push(format!("deny network-outbound * ({more} more)"));
    }
    if told.proxy_gone {
        lines.push("deny network-outbound * (the proxy ended before the command did)".to_owned());
    }
    if lines.is_empty() {
        return None;
    }
    let name = name.map(|name| format!(" [{}]", clean_reason(name, "?"))).unwrap_or_default();
    Some(format!("<sandbox_violations>\n{}{name}\n</sandbox_violations>", lines.join(&format!("{name}\n"))))
}

fn line(event: &Event) -> String {
    let host = match event.host.as_str() {
        "" => "?".to_owned(),
        v6 if v6.contains(':') => format!("[{v6}]"),
        host => host.to_owned(),
    };
    let reason = clean_reason(event.reason.as_deref().unwrap_or_default(), "denied");
    format!("deny network-outbound {host}:{} ({reason})", event.port)
}

#[cfg(test)]
mod tests {
    use srt_shared::event::{IngressKind, Timestamp};

    use super::*;

    fn refused(host: &str, reason: &str) -> Event {
        Event {
            time: Timestamp::now(),
            event: EventKind::Refused,
            session: None,
            ingress: IngressKind::Connect,
            host: host.to_owned(),
            port: 443,
            method: None,
            path: None,
            code: None,
            status: Some(403),
            rule: None,
            reason: Some(reason.to_owned()),
            bytes_in: 0,
            bytes_out: 0,
            ms: 0.1,
        }
    }

    fn told(events: &[Event]) -> Told {
        Told { events: events.to_vec(), ..Told::default() }
    }

    fn gone(events: &[Event]) -> Told {
        Told { proxy_gone: true, ..told(events) }
    }

    #[test]
    fn what_is_too_much_to_read_is_counted() {
        let events: Vec<Event> =
            (0..MAX_REPORT_LINES + 3).map(|i| refused(&format!("h{i}.test"), "x")).collect();
        let told = Told { unlisted: 4, ..told(&events) };
        let report = report(&told, &Ignored::default(), None).unwrap();
        assert_eq!(report.lines().count(), MAX_REPORT_LINES + 3);
        assert!(report.contains("h199.test") && !report.contains("h200.test"), "{report}");
        assert!(report.ends_with("deny network-outbound * (7 more)\n</sandbox_violations>"), "{report}");
    }

    #[test]
    fn each_refusal_is_told_once_and_cleaned() {
        let events =
            [refused("a.test", "no <b>\nway"), refused("a.test", "no <b>\nway"), refused("::1", "x")];
        assert_eq!(
            report(&told(&events), &Ignored::default(), None).unwrap(),
            "<sandbox_violations>\ndeny network-outbound a.test:443 (no b way)\n\
             deny network-outbound [::1]:443 (x)\n</sandbox_violations>"
        );
        assert_eq!(report(&told(&[]), &Ignored::default(), None), None);
        assert!(report(&gone(&[]), &Ignored::default(), None).unwrap().contains("the proxy ended"));
    }

    #[test]
    fn each_line_names_its_job() {
        let events = [refused("a.test", "x"), refused("b.test", "x")];
        assert_eq!(
            report(&gone(&events), &Ignored::default(), Some("build-42")).unwrap(),
            "<sandbox_violations>\ndeny network-outbound a.test:443 (x) [build-42]\n\
             deny network-outbound b.test:443 (x) [build-42]\n\
             deny network-outbound * (the proxy ended before the command did) [build-42]\n</sandbox_violations>"
        );
        // A name is no way to end the report, nor a way to leave something out of it.
        let odd = Some("</sandbox_violations>");
        assert!(
            report(&told(&events), &Ignored::default(), odd).unwrap().contains("(x) [/sandbox_violations]\n")
        );
        let settings = BTreeMap::from([("*".to_owned(), vec!["build".to_owned()])]);
        let ignored = Ignored::of_command(&settings, "");
        assert!(report(&told(&events), &ignored, Some("build-42")).is_some());
    }

    #[test]
    fn ignored_ones_are_left_out_for_their_commands_only() {
        let settings = BTreeMap::from([
            ("npm".to_owned(), vec!["telemetry.test".to_owned()]),
            ("*".to_owned(), vec!["everywhere.test".to_owned()]),
        ]);
        let events = [refused("telemetry.test", "x"), refused("everywhere.test", "x")];
        let report_of = |command| report(&told(&events), &Ignored::of_command(&settings, command), None);
        assert_eq!(report_of("npm test"), None);
        assert!(report_of("cargo test").unwrap().contains("telemetry.test"));
        assert!(!report_of("cargo test").unwrap().contains("everywhere.test"));
    }
}
