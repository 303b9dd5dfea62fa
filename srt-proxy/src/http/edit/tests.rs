use bytes::BytesMut;
use srt_shared::field_name::FieldName;

use super::*;
use crate::http::{HeadReader, RequestHead, ResponseHead};

fn request(fields: &str) -> RequestHead {
    let mut buf = BytesMut::from(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
    HeadReader::new().read_request(&mut buf).unwrap().unwrap()
}

fn response(fields: &str) -> ResponseHead {
    let mut buf = BytesMut::from(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes());
    HeadReader::new().read_response(&mut buf).unwrap().unwrap()
}

fn lines<'a>(fields: impl Iterator<Item = Field<'a>>) -> Vec<String> {
    fields.map(|field| format!("{}: {}", field.name.escape_ascii(), field.value.escape_ascii())).collect()
}

fn forwarded(fields: &str, edits: &Edits<'_>) -> Vec<String> {
    let head = request(fields);
    let connection = ConnectionOptions::parse(head.fields()).unwrap();
    lines(forwarded_request_fields(head.fields(), &connection, edits))
}

fn returned(fields: &str, strip: &[&str]) -> Vec<String> {
    let head = response(fields);
    let connection = ConnectionOptions::parse(head.fields()).unwrap();
    lines(forwarded_response_fields(head.fields(), &connection, &strip.iter().collect()))
}

fn name(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

#[test]
fn what_ends_at_this_hop_is_dropped_and_the_rest_stays() {
    for (fields, kept) in [
        ("", &[][..]),
        ("x-B: 1\r\nHost: a\r\nX-a: 2\r\nx-B: 3\r\n", &["x-B: 1", "X-a: 2", "x-B: 3"]),
        (
            "User-Agent: a\r\nUser-Agent: b\r\nCookie: a=1\r\nCookie: b=2\r\n",
            &["User-Agent: a", "User-Agent: b", "Cookie: a=1", "Cookie: b=2"],
        ),
        // Every one of them, in any case.
        (
            "Connection: keep-alive\r\nKEEP-ALIVE: 5\r\nProxy-Connection: x\r\nProxy-Authorization: Basic x\r\n\
             Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nTE: trailers\r\nTrailer: X\r\n\
             Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nX-Kept: 1\r\n",
            &["X-Kept: 1"],
        ),
        // And in any spelling that a server may take for it.
        (
            "Proxy_Authorization: x\r\nkeep.alive: 1\r\nProxy.Connection: 1\r\ntransfer_encoding: chunked\r\n\
             Content_Length: 5\r\nContent.Length: 6\r\nX-Kept: 1\r\n",
            &["X-Kept: 1"],
        ),
        // Names that only begin or end like one.
        (
            "Te-X: 1\r\nX-Upgrade: 2\r\nHosts: 3\r\nTrailers: 4\r\n",
            &["Te-X: 1", "X-Upgrade: 2", "Hosts: 3", "Trailers: 4"],
        ),
        // What Connection names.
        (
            "Connection: x-one,X-Two , x_three\r\nX-One: 1\r\nx.two: 2\r\nX-Three: 3\r\nX-Kept: 4\r\n",
            &["X-Kept: 4"],
        ),
        ("X-Late: 1\r\nX-Kept: 2\r\nConnection: close\r\nConnection: x-late\r\n", &["X-Kept: 2"]),
        ("Connection: host, content-length\r\nContent-Length: 5\r\nHost: a\r\nX-Kept: 1\r\n", &["X-Kept: 1"]),
        // Values are not touched.
        ("X-A: caf\u{e9}\t \"x\"\r\nX-E:\r\n", &["X-A: caf\\xc3\\xa9\\t \\\"x\\\"", "X-E: "]),
    ] {
        assert_eq!(forwarded(fields, &Edits::default()), kept, "{fields:?}");
    }
}

#[test]
fn decider_edits() {
    let (tenant, role, gone) = (name("x-tenant-id"), name("x_role"), name("x-gone"));
    let mut edits = Edits::default();
    assert!(!edits.adds_fields());
    edits.remove(&gone);
    assert!(!edits.adds_fields());
    edits.set(&tenant, b"a".to_vec()).unwrap();
    edits.set(&tenant, b"b".to_vec()).unwrap();
    edits.set(&role, b"user\xe9".to_vec()).unwrap();
    assert!(edits.adds_fields());
    let fields = "X_Tenant_Id: 1\r\nx.tenant.id: 2\r\nX-Tenantid: 3\r\nX-Role: admin\r\nX-GONE: 4\r\nx_gone: 5\r\n\
                  Authorization: mine\r\n";
    assert_eq!(
        forwarded(fields, &edits),
        ["X-Tenantid: 3", "Authorization: mine", "x-tenant-id: a", "x-tenant-id: b", "x_role: user\\xe9",]
    );
}

#[test]
fn a_name_both_removed_and_set_is_set() {
    let a = name("x-a");
    for remove_first in [true, false] {
        let mut edits = Edits::default();
        if remove_first {
            edits.remove(&a);
        }
        edits.set(&a, b"new".to_vec()).unwrap();
        if !remove_first {
            edits.remove(&a);
        }
        assert_eq!(forwarded("X-A: old\r\n", &edits), ["x-a: new"]);
    }
}

#[test]
fn a_credential_replaces_all_of_the_clients() {
    let (a, b) = (name("x-a"), name("x-b"));
    let mut edits = Edits::default();
    edits.remove(&b);
    edits.authorize(Secret::from(b"Bearer tok".to_vec())).unwrap();
    edits.set(&a, b"1".to_vec()).unwrap();
    assert!(edits.adds_fields());
    let fields = "Authorization: evil\r\nauthorization: evil\r\nCookie: evil\r\nX_Api_Key: evil\r\nx.api.key: evil\r\n\
                  Proxy-Authorization: evil\r\nX-B: 2\r\nX-Kept: 3\r\n";
    assert_eq!(forwarded(fields, &edits), ["X-Kept: 3", "x-a: 1", "Authorization: Bearer tok"]);
}

#[test]
fn connection_cannot_take_away_what_is_set() {
    let a = name("x-a");
    let mut edits = Edits::default();
    edits.set(&a, b"1".to_vec()).unwrap();
    edits.authorize(Secret::from(b"Bearer tok".to_vec())).unwrap();
    let fields = "Connection: x-a, authorization, x_a\r\nX-A: 2\r\nAuthorization: evil\r\n";
    assert_eq!(forwarded(fields, &edits), ["x-a: 1", "Authorization: Bearer tok"]);
}

#[test]
fn what_may_not_be_set() {
    let a = name("x-a");
    let mut edits = Edits::default();
    for framing in [
        "host",
        "content-length",
        "content_length",
        "transfer-encoding",
        "transfer.encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
        "proxy-connection",
    ] {
        assert_eq!(Edits::default().set(&name(framing), b"x".to_vec()), Err(EditError::Framing), "{framing}");
    }
    for credential in ["authorization", "proxy-authorization", "proxy_authorization", "cookie", "x-api-key"] {
        assert_eq!(
            Edits::default().set(&name(credential), b"x".to_vec()),
            Err(EditError::Credential),
            "{credential}"
        );
    }
    for value in [&b"a\r\nX: y"[..], b"a\n", b"\r", b"\0", b"\x1b", b"\x7f"] {
        assert_eq!(edits.set(&a, value.to_vec()), Err(EditError::Value), "{}", value.escape_ascii());
        assert_eq!(edits.authorize(Secret::from(value.to_vec())), Err(EditError::Value));
    }
    assert!(!edits.adds_fields());
}

#[test]
fn responses() {
    for (fields, strip, kept) in [
        (
            "Set-Cookie: a=1\r\nX-A: 1\r\nSet-Cookie: b=2, c\r\nVary: x\r\n",
            &[][..],
            &["Set-Cookie: a=1", "X-A: 1", "Set-Cookie: b=2, c", "Vary: x"][..],
        ),
        (
            "Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=77\r\nX_Hop: 1\r\nProxy-Authenticate: Basic\r\n\
             Transfer-Encoding: chunked\r\nContent-Length: 5\r\nUpgrade: h2\r\nX-Kept: 1\r\n",
            &[],
            &["X-Kept: 1"],
        ),
        ("Trailer: X-T\r\n", &[], &["Trailer: X-T"]),
        // Only our own refusals carry these.
        (
            "X-Deny-Reason: decider\r\nx_deny.reason: a\r\nX-PROXY-ERROR: b\r\nX-Deny: c\r\n",
            &[],
            &["X-Deny: c"],
        ),
        ("X-Secret: 1\r\nx_secret: 2\r\nHost: 3\r\nX-Kept: 4\r\n", &["x-secret", "host"], &["X-Kept: 4"]),
    ] {
        assert_eq!(returned(fields, strip), kept, "{fields:?}");
    }
}

#[test]
fn trailers() {
    let fields = "Grpc-Status: 0\r\nContent-Length: 5\r\nTransfer_Encoding: chunked\r\nHost: a\r\nConnection: x\r\n\
                  X-Deny-Reason: decider\r\nx_gone: 1\r\ngrpc-message: \r\n";
    let head = response(fields);
    let strip = ["x-gone"].iter().collect();
    assert_eq!(lines(forwarded_trailers(head.fields(), &strip)), ["Grpc-Status: 0", "grpc-message: "]);
}
