use serde_json::json;

use super::*;

fn condition(operations: &[OperationKind], fields: &[&str]) -> GraphqlCondition {
    GraphqlCondition {
        operations: operations.to_vec(),
        fields: fields.iter().map(|field| (*field).into()).collect(),
    }
}

fn check(condition: &GraphqlCondition, document: &str) -> Result<(), GraphqlMismatch> {
    condition.check(&json!({ "query": document }), None, Reach::Narrow)
}

#[test]
fn takes_documents_of_queries_only() {
    let queries = condition(&[OperationKind::Query], &[]);
    for document in [
        "{ viewer { login } }",
        "query { viewer { login } }",
        "query Name($a: [Int!]! = [1, 2]) @dir(x: {y: \"}\"}) { viewer }",
        "query A { a } query B { b }",
        "query { ...F } fragment F on Query { viewer { login } }",
        "fragment F on Query { a } query { ...F }",
        "{ ... on Query { a } ... @include(if: true) { b } }",
        "# mutation { a }\n{ a }",
        "{ a(text: \"mutation { b }\") }",
        "{ mutation query subscription fragment }",
        "{ mutation: viewer { login } }",
        "query mutation { a }",
        "{ a(n: -1.5e3, b: true, c: $d, e: ENUM) }",
        "{ a(text: \"quote \\\" caf\u{e9}\") }",
        "{,a,,b,}",
    ] {
        assert_eq!(check(&queries, document), Ok(()), "{document}");
    }
}

#[test]
fn refuses_whatever_else_a_document_has() {
    let queries = condition(&[OperationKind::Query], &[]);
    let mutation = GraphqlMismatch::Operation(OperationKind::Mutation);
    for document in [
        "mutation { a }",
        "query { a } mutation { b }",
        "mutation M { a } query Q { b }",
        "{ a } mutation { b }",
        "query Q { a } # comment\nmutation M { b }",
        "query Q { a }\r\nmutation M { b }",
        "fragment F on Mutation { b } query Q { a } mutation M { ...F }",
        "query Q { a(t: \"}\") } mutation M { b }",
        "query Q { a(t: \"\\\"\") } mutation M { b }",
        "mutation($a: Int) @dir { b }",
        "query query { a } mutation mutation { b }",
    ] {
        assert_eq!(check(&queries, document), Err(mutation.clone()), "{document}");
    }
    let subscription = GraphqlMismatch::Operation(OperationKind::Subscription);
    assert_eq!(check(&queries, "subscription { a }"), Err(subscription));
    for document in [
        "",
        "# nothing",
        "fragment F on Query { a }",
        "{ }",
        "{ a",
        "{ a } }",
        "{ a(b: [1) ] }",
        "{ a } mutation",
        "type Query { a: Int }",
        "extend type Query { a: Int }",
        "Mutation { a }",
        "{ a(t: \"\"\"block\"\"\") }",
        "{ a } # comment\rmutation { b }",
        "{ a } # comment\u{2028}mutation { b }",
        "{ a } \u{feff} mutation { b }",
        "\u{feff}{ a }",
        "{ a(t: \"line\nend\") }",
        "{ a(t: \"open) }",
        "{ a ; b }",
        "{ a: }",
        "{ : a }",
        "{ .. F }",
        "query { a } 'x'",
        "fragment on on Query { a } { b }",
    ] {
        let result = check(&queries, document);
        assert!(matches!(result, Err(GraphqlMismatch::Document(_))), "{document}: {result:?}");
    }
}

#[test]
fn root_fields_are_seen_through_aliases() {
    let fields = condition(&[OperationKind::Query], &["repository", "viewer"]);
    assert_eq!(check(&fields, "{ viewer { organizations } x: repository(owner: \"a\") { id } }"), Ok(()));
    for document in [
        "{ viewer: enterprise { id } }",
        "{ viewer { login } repository: organization { id } }",
        "query A { viewer } query B { organization }",
    ] {
        assert!(matches!(check(&fields, document), Err(GraphqlMismatch::Field(_))), "{document}");
    }
    for document in ["{ ...F } fragment F on Query { viewer }", "{ viewer ... on Query { organization } }"] {
        assert_eq!(check(&fields, document), Err(GraphqlMismatch::RootFragment), "{document}");
    }
}

#[test]
fn the_envelope_is_one_plain_request() {
    let queries = condition(&[OperationKind::Query], &[]);
    let check = |body: Value, url: Option<&str>| queries.check(&body, url, Reach::Narrow);
    assert_eq!(check(json!({"query": "{a}", "variables": {"b": 1}, "operationName": null}), None), Ok(()));
    for (body, url) in [
        (json!([{"query": "{a}"}, {"query": "mutation {b}"}]), None),
        (json!({"query": "{a}", "Query": "mutation {b}"}), None),
        (json!({"query": "{a}", "extensions": {"persistedQuery": {"sha256Hash": "0"}}}), None),
        (json!({"query": "{a}", "id": "stored"}), None),
        (json!({"query": ["mutation {b}"]}), None),
        (json!({"variables": {}}), None),
        (json!("{a}"), None),
        (json!({"query": "{a}"}), Some("query=mutation{b}")),
    ] {
        assert!(check(body.clone(), url).is_err(), "{body} {url:?}");
    }
}

#[test]
fn a_deny_takes_what_it_cannot_read() {
    let mutations = condition(&[OperationKind::Mutation], &["deleteRepository"]);
    let check = |body: Value| mutations.check(&body, None, Reach::Wide).is_ok();
    assert!(check(json!({"query": "{a} mutation { x: deleteRepository }"})));
    assert!(check(json!({"query": "mutation { ...F } fragment F on Mutation { deleteRepository }"})));
    assert!(check(json!([{"query": "mutation { deleteRepository }"}])));
    assert!(check(json!({"query": "\"\"\""})));
    assert!(!check(json!({"query": "{ deleteRepository }"})));
    assert!(!check(json!({"query": "mutation { addStar }"})));
}
