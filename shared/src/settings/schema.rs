//! Keeps `docs/settings.schema.json` true to the types, and the types true to what is read.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};

use super::Settings;

fn generated() -> Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(Settings)).unwrap();
    // schemars puts the name of the Rust type there.
    schema["$id"] = json!("settings.schema.json");
    take_out_null(&mut schema);
    schema
}

/// An `Option` is a key that may be absent; `null` is refused, unlike what schemars takes an `Option` for.
fn take_out_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return schema.as_array_mut().into_iter().flatten().for_each(take_out_null);
    };
    object.values_mut().for_each(take_out_null);
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(parts)) = object.get_mut("anyOf") {
        parts.retain(|part| part.get("type") != Some(&json!("null")));
        if let [only] = parts.as_mut_slice() {
            let only = only.take();
            object.remove("anyOf");
            object.extend(only.as_object().unwrap().clone());
        }
    }
}

#[test]
fn the_schema_in_docs_is_the_one_of_the_types() {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.schema.json"));
    let text = format!("{:#}\n", generated());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "docs/settings.schema.json is out of date: run the tests once with UPDATE_SCHEMA=1"
    );
}

/// Every object of the schema is filled with all its keys at once, each with a value of the wrong kind. A key
/// that is read complains about its value; one that is only in the types is reported as unknown, or not at all.
#[test]
fn every_key_of_the_schema_is_read() {
    let schema = generated();
    for (path, pointer) in [
        ("", ""),
        ("network", "/$defs/Network"),
        ("network.mitmProxy", "/$defs/MitmProxy"),
        ("network.parentProxy", "/$defs/ParentProxy"),
        ("network.tlsTerminate", "/$defs/TlsTerminate"),
        ("filesystem", "/$defs/Filesystem"),
        ("credentials", "/$defs/Credentials"),
        ("credentials.sigv4", "/$defs/SigV4"),
        ("git", "/$defs/Git"),
        ("ripgrep", "/$defs/Ripgrep"),
        ("seccomp", "/$defs/SeccompHelper"),
        ("windows", "/$defs/Windows"),
        ("windows.srtWin", "/$defs/SrtWin"),
    ] {
        let keys = keys_of(schema.pointer(pointer).unwrap(), &schema);
        assert!(!keys.is_empty(), "{pointer}");
        let mut object = Value::Object(keys.iter().map(|key| (key.clone(), json!(null))).collect());
        for outer in path.split('.').rev().filter(|key| !key.is_empty()) {
            object = json!({ outer: object });
        }
        let problems = Settings::parse(object.to_string().as_bytes()).unwrap_err().to_string();
        for key in keys {
            let place = if path.is_empty() { key } else { format!("{path}.{key}") };
            assert!(problems.contains(&format!("{place}: expected ")), "{place} is not read: {problems}");
        }
    }
}

/// The keys of an object of the schema; those of flattened parts stand beside its own.
fn keys_of(object: &Value, schema: &Value) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> =
        object["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    for list in ["anyOf", "allOf", "oneOf"] {
        for part in object[list].as_array().into_iter().flatten() {
            let part =
                part["$ref"].as_str().map_or(part, |r| schema.pointer(r.trim_start_matches('#')).unwrap());
            keys.extend(keys_of(part, schema));
        }
    }
    keys
}
