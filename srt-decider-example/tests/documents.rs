//! What the documents show must be true of the code.

// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use srt_decider_example::rules::Rules;
use srt_shared::decider::{parse_from_decider, parse_from_proxy};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The fenced blocks whose first line says `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_message_shown_is_one() {
    let text = read("../docs/decider-protocol.md");
    let (ours, theirs) = (blocks(&text, "json proxy"), blocks(&text, "json decider"));
    assert_eq!((ours.len(), theirs.len()), (3, 5));
    for message in ours {
        assert!(parse_from_proxy(message.as_bytes()).is_ok(), "{message}");
    }
    for message in theirs {
        assert!(parse_from_decider(message.as_bytes()).is_ok(), "{message}");
    }
}

#[test]
fn the_decider_shown_is_the_one_that_is_compiled() {
    let example = read("examples/minimal.rs");
    assert_eq!(blocks(&read("../docs/writing-a-decider.md"), "rust")[0], example);
    assert!(example.lines().count() <= 30);
}

#[test]
fn every_key_of_the_rules_file_is_explained() {
    let text = read("../docs/srt-decider-example.md");
    for block in blocks(&text, "toml") {
        Rules::parse(&block, Path::new("docs")).unwrap();
    }
    for unknown in ["x = 1", "[[rule]]\nx = 1", "[otherwise]\nx = 1"] {
        let error = Rules::parse(unknown, Path::new("r")).unwrap_err().to_string();
        let (_, known) = error.split_once("known are ").unwrap();
        for key in known.split(", ") {
            assert!(text.contains(&format!("`{key}`")) || text.contains(&format!("[{key}]")), "{key}");
        }
    }
}
