//! The keys of a rule that say when it applies.

use std::convert::Infallible;

use srt_shared::{
    domain::{DomainPattern, PatternError},
    field_name::{FieldName, is_token},
};
use toml::de::DeValue;

use super::{
    document::{Document, Section, Value},
    error::RulesError,
    values::{boolean, integer, one_or_more, small, texts},
};
use crate::{
    conditions::Conditions,
    graphql::{GraphqlCondition, OperationKind},
    header::{HeaderCondition, HeaderWanted},
    json::{JsonCondition, JsonWanted, Scalar},
    path::PathPattern,
    query::{Parameter, QueryCondition},
    text::TextPattern,
};

/// Every key of a condition.
pub(super) const KEYS: [&str; 10] =
    ["host", "port", "method", "path", "query", "query_only", "headers", "json", "json_only", "graphql"];

/// Those that look at the body.
pub(super) const BODY_KEYS: [&str; 3] = ["json", "json_only", "graphql"];

pub(super) fn read(section: &Section<'_>) -> Result<Conditions, RulesError> {
    let document = section.document;
    let list = |key| section.find(key).map(|value| (key, value));
    let mut conditions = Conditions::default();
    if let Some((key, value)) = list("host") {
        conditions.hosts = texts(document, key, value, parse_host)?;
    }
    if let Some((key, value)) = list("port") {
        conditions.ports = one_or_more(document, key, value)?
            .into_iter()
            .map(|value| match small(document, key, value, "a port from 1 to 65535")? {
                0 => Err(document.value_fault(value, key, "expected a port from 1 to 65535")),
                port => Ok(port),
            })
            .collect::<Result<_, _>>()?;
    }
    if let Some((key, value)) = list("method") {
        conditions.methods = texts(document, key, value, parse_method)?;
    }
    if let Some((key, value)) = list("path") {
        conditions.paths = texts(document, key, value, PathPattern::parse)?;
    }
    if let Some((key, value)) = list("query") {
        conditions.query.parameters = read_query(document, key, value)?;
    }
    if let Some((key, value)) = list("query_only") {
        conditions.query = QueryCondition { only: boolean(document, key, value)?, ..conditions.query };
    }
    if let Some((key, value)) = list("headers") {
        conditions.headers = read_headers(document, key, value)?;
    }
    if let Some((key, value)) = list("json") {
        conditions.json = read_json(document, key, value)?;
    }
    if let Some((key, value)) = list("json_only") {
        conditions.json_only = Some(texts(document, key, value, |text| Ok::<_, Infallible>(text.into()))?);
    }
    if let Some((key, value)) = list("graphql") {
        conditions.graphql = Some(read_graphql(document, key, value)?);
    }
    Ok(conditions)
}

fn parse_host(text: &str) -> Result<DomainPattern, String> {
    match DomainPattern::parse_hello(text) {
        Ok(pattern) if pattern.port().is_none() => Ok(pattern),
        Ok(_) => Err(format!("{text:?}: write the port under its own key: port")),
        Err(PatternError::BareStar) => Err("a decider cannot be asked about every host; name them".into()),
        Err(error) => Err(format!("{text:?}: {error}")),
    }
}

fn parse_method(text: &str) -> Result<Box<str>, String> {
    if !is_token(text.as_bytes()) {
        return Err(format!("{text:?} is no method"));
    }
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(format!("methods are compared as spelled: write {:?}", text.to_ascii_uppercase()));
    }
    Ok(text.into())
}

fn any_text(text: &str) -> Result<TextPattern, Infallible> {
    Ok(TextPattern::new(text))
}

fn read_query<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<Vec<Parameter>, RulesError> {
    let mut parameters = Vec::new();
    for (name, value) in Section::entries(document, key, value)? {
        let label = format!("{key}.{name}");
        let values = match value.get_ref() {
            DeValue::Boolean(true) => vec![TextPattern::new("*")],
            DeValue::Boolean(false) => {
                return Err(document.value_fault(
                    value,
                    &label,
                    "to keep parameters out write query_only = true",
                ));
            }
            _ => texts(document, &label, value, any_text)?,
        };
        parameters.push(Parameter { name: name.into(), values });
    }
    Ok(parameters)
}

fn read_headers<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<Vec<HeaderCondition>, RulesError> {
    let mut headers: Vec<HeaderCondition> = Vec::new();
    for (name, value) in Section::entries(document, key, value)? {
        let label = format!("{key}.{name}");
        let name = parse_field_name(document, &label, name, value)?;
        if name.as_str() == "host" {
            return Err(document.value_fault(
                value,
                &label,
                "the target is under host; the header agrees with it",
            ));
        }
        let wanted = match value.get_ref() {
            DeValue::Boolean(true) => HeaderWanted::Present,
            DeValue::Boolean(false) => HeaderWanted::Absent,
            _ => HeaderWanted::OneOf(texts(document, &label, value, any_text)?),
        };
        headers.push(HeaderCondition { name, wanted });
    }
    Ok(headers)
}

/// Header names may be written in any letter case; the protocol has them in lower case.
pub(super) fn parse_field_name(
    document: &Document<'_>,
    label: &str,
    name: &str,
    at: &Value<'_>,
) -> Result<FieldName, RulesError> {
    FieldName::parse(&name.to_ascii_lowercase())
        .map_err(|error| document.value_fault(at, label, format!("{name:?} is {error}")))
}

fn read_json<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<Vec<JsonCondition>, RulesError> {
    let mut fields = Vec::new();
    for (name, value) in Section::entries(document, key, value)? {
        let label = format!("{key}.{name}");
        if name.split('.').any(str::is_empty) {
            return Err(document.value_fault(value, &label, "write the keys with one dot between them"));
        }
        let wanted = match value.get_ref() {
            DeValue::Table(_) => read_json_range(document, &label, value)?,
            _ => JsonWanted::OneOf(read_scalars(document, &label, value)?),
        };
        fields.push(JsonCondition { path: name.split('.').map(Into::into).collect(), wanted });
    }
    Ok(fields)
}

fn read_scalars<'d>(
    document: &Document<'_>,
    label: &str,
    value: &'d Value<'d>,
) -> Result<Vec<Scalar>, RulesError> {
    one_or_more(document, label, value)?
        .into_iter()
        .map(|value| match value.get_ref() {
            DeValue::String(text) => Ok(Scalar::Text(TextPattern::new(text))),
            DeValue::Boolean(value) => Ok(Scalar::Bool(*value)),
            DeValue::Integer(_) => integer(document, label, value).map(Scalar::Integer),
            _ => Err(document.kind_fault(
                value,
                label,
                "a string, an integer, true or false, a list of these, or a table such as { max = 100 }",
            )),
        })
        .collect()
}

fn read_json_range<'d>(
    document: &Document<'_>,
    label: &str,
    value: &'d Value<'d>,
) -> Result<JsonWanted, RulesError> {
    let (mut min, mut max, mut present) = (None, None, None);
    for (word, value) in Section::entries(document, label, value)? {
        match word {
            "min" => min = Some(integer(document, label, value)?),
            "max" => max = Some(integer(document, label, value)?),
            "present" => present = Some(boolean(document, label, value)?),
            _ => return Err(document.unknown(value.span().start, "key", word, &["min", "max", "present"])),
        }
    }
    match (min, max, present) {
        (None, None, Some(true)) => Ok(JsonWanted::Present),
        (None, None, Some(false)) => Ok(JsonWanted::Absent),
        (None, None, None) => Err(document.value_fault(value, label, "write min, max or present")),
        (min, max, None) if min.zip(max).is_none_or(|(min, max)| min <= max) => {
            Ok(JsonWanted::Between(min, max))
        }
        (_, _, None) => Err(document.value_fault(value, label, "min is above max")),
        _ => Err(document.value_fault(value, label, "present goes without min and max")),
    }
}

fn read_graphql<'d>(
    document: &Document<'_>,
    key: &str,
    value: &'d Value<'d>,
) -> Result<GraphqlCondition, RulesError> {
    let (mut operations, mut fields) = (None, Vec::new());
    for (word, value) in Section::entries(document, key, value)? {
        let label = format!("{key}.{word}");
        match word {
            "operations" => operations = Some(texts(document, &label, value, parse_operation)?),
            "fields" => fields = texts(document, &label, value, |text| Ok::<_, Infallible>(text.into()))?,
            _ => return Err(document.unknown(value.span().start, "key", word, &["operations", "fields"])),
        }
    }
    let Some(operations) = operations else {
        return Err(document.value_fault(
            value,
            key,
            "operations is missing, such as operations = \"query\"",
        ));
    };
    Ok(GraphqlCondition { operations, fields })
}

fn parse_operation(text: &str) -> Result<OperationKind, String> {
    OperationKind::parse(text).ok_or_else(|| format!("{text:?} is not query, mutation or subscription"))
}
