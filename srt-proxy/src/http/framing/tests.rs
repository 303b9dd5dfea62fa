use bytes::BytesMut;

use super::{BodyFraming::*, FramingError::*, *};
use crate::http::HeadReader;

fn request(method: &str, version: &str, fields: &str) -> Result<BodyFraming, FramingError> {
    let mut buf = BytesMut::from(format!("{method} /a HTTP/{version}\r\n{fields}\r\n").as_bytes());
    request_framing(&HeadReader::new().read_request(&mut buf).unwrap().unwrap())
}

fn response(method: &str, start: &str, fields: &str) -> Result<(BodyFraming, Option<u64>), FramingError> {
    let mut buf = BytesMut::from(format!("HTTP/{start}\r\n{fields}\r\n").as_bytes());
    let head = HeadReader::new().read_response(&mut buf).unwrap().unwrap();
    response_framing(&head, method).map(|framing| (framing.body, framing.declared_length))
}

const TE: &str = "Transfer-Encoding: chunked\r\n";
const CL: &str = "Content-Length: 5\r\n";

#[test]
fn requests_accepted() {
    for (fields, framing) in [
        ("", None),
        ("Content-Length: 0\r\n", Length(0)),
        (CL, Length(5)),
        ("content-length:5\r\n", Length(5)),
        ("Content-Length: \t 5 \t\r\n", Length(5)),
        ("Content-Length: 9223372036854775807\r\n", Length(9223372036854775807)),
        (TE, Chunked),
        ("TRANSFER-encoding:ChUnKeD\r\n", Chunked),
        // Look-alikes are not framing for us; that they never get past us is for `edit` to see to.
        ("transfer_encoding: chunked\r\n", None),
        ("Content.Length: 5\r\n", None),
        ("Content_Length: 6\r\nContent-Length: 5\r\n", Length(5)),
    ] {
        for method in ["GET", "POST", "HEAD", "OPTIONS", "DELETE"] {
            assert_eq!(request(method, "1.1", fields), Ok(framing), "{method} {fields:?}");
        }
    }
    assert_eq!(request("POST", "1.0", CL), Ok(Length(5)));
    assert_eq!(request("GET", "1.0", ""), Ok(None));
    assert_eq!(request("CONNECT", "1.1", ""), Ok(None));
    assert_eq!(request("CONNECT", "1.1", "Content-Length: 0\r\n"), Ok(Length(0)));
}

#[test]
fn requests_refused() {
    for (fields, why) in [
        (&format!("{CL}{TE}")[..], LengthAndEncoding),
        (&format!("{TE}{CL}"), LengthAndEncoding),
        (&format!("{TE}X: y\r\ncontent-LENGTH: zero\r\n"), LengthAndEncoding),
        (&format!("{CL}Content-Length: 6\r\n"), RepeatedLength),
        (&format!("{CL}{CL}"), RepeatedLength),
        (&format!("{CL}X: y\r\nCONTENT-LENGTH: 5\r\n"), RepeatedLength),
        (&format!("{TE}{CL}{CL}"), RepeatedLength),
        ("Content-Length: 5, 5\r\n", MalformedLength),
        ("Content-Length: 5,\r\n", MalformedLength),
        ("Content-Length:\r\n", MalformedLength),
        ("Content-Length: +5\r\n", MalformedLength),
        ("Content-Length: -5\r\n", MalformedLength),
        ("Content-Length: -0\r\n", MalformedLength),
        ("Content-Length: 0x5\r\n", MalformedLength),
        ("Content-Length: 5a\r\n", MalformedLength),
        ("Content-Length: 1 1\r\n", MalformedLength),
        ("Content-Length: 1_1\r\n", MalformedLength),
        ("Content-Length: 5.0\r\n", MalformedLength),
        ("Content-Length: 5e0\r\n", MalformedLength),
        ("Content-Length: \"5\"\r\n", MalformedLength),
        ("Content-Length: 5;a=b\r\n", MalformedLength),
        ("Content-Length: 0005\r\n", MalformedLength),
        ("Content-Length: 00\r\n", MalformedLength),
        ("Content-Length: \u{0665}\r\n", MalformedLength),
        ("Content-Length: 9223372036854775808\r\n", LengthTooLarge),
        ("Content-Length: 18446744073709551616\r\n", LengthTooLarge),
        ("Content-Length: 99999999999999999999999\r\n", LengthTooLarge),
        (&format!("{TE}{TE}"), RepeatedEncoding),
        (&format!("{TE}Transfer-Encoding: identity\r\n"), RepeatedEncoding),
        (&format!("Transfer-Encoding: identity\r\n{TE}"), RepeatedEncoding),
        (&format!("{TE}Transfer-Encoding:\r\n"), RepeatedEncoding),
        ("Transfer-Encoding:\r\n", UnknownEncoding),
        ("Transfer-Encoding: xchunked\r\n", UnknownEncoding),
        ("Transfer-Encoding: chunkedx\r\n", UnknownEncoding),
        ("Transfer-Encoding: identity\r\n", UnknownEncoding),
        ("Transfer-Encoding: gzip\r\n", UnknownEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", UnknownEncoding),
        ("Transfer-Encoding: chunked, identity\r\n", UnknownEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", UnknownEncoding),
        ("Transfer-Encoding: chunked,\r\n", UnknownEncoding),
        ("Transfer-Encoding: ,chunked\r\n", UnknownEncoding),
        ("Transfer-Encoding: chunked;q=1\r\n", UnknownEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", UnknownEncoding),
        ("Transfer-Encoding: \u{a0}chunked\r\n", UnknownEncoding),
        (&format!("{CL}Transfer-Encoding: identity\r\n"), UnknownEncoding),
    ] {
        for method in ["GET", "POST"] {
            assert_eq!(request(method, "1.1", fields), Err(why), "{fields:?}");
        }
    }
    assert_eq!(request("POST", "1.0", TE), Err(EncodingInHttp10));
    assert_eq!(request("POST", "1.0", &format!("{CL}{TE}")), Err(EncodingInHttp10));
    assert_eq!(request("CONNECT", "1.1", CL), Err(ConnectContent));
    assert_eq!(request("CONNECT", "1.1", TE), Err(ConnectContent));
}

#[test]
fn responses_accepted() {
    for (method, start, fields, want) in [
        ("GET", "1.1 200 OK", CL, (Length(5), Some(5))),
        ("GET", "1.0 200 OK", CL, (Length(5), Some(5))),
        ("GET", "1.1 200 OK", TE, (Chunked, Option::None)),
        ("GET", "1.1 200 OK", "", (UntilClose, Option::None)),
        ("GET", "1.0 404 No", "", (UntilClose, Option::None)),
        ("POST", "1.1 205 Reset", "Content-Length: 0\r\n", (Length(0), Some(0))),
        // No content whatever the head says about one.
        ("HEAD", "1.1 200 OK", CL, (None, Some(5))),
        ("HEAD", "1.1 200 OK", TE, (None, Option::None)),
        ("HEAD", "1.1 200 OK", "", (None, Option::None)),
        ("GET", "1.1 304 Same", CL, (None, Some(5))),
        ("GET", "1.1 304 Same", "", (None, Option::None)),
        ("GET", "1.1 204 None", CL, (None, Option::None)),
        ("HEAD", "1.1 204 None", CL, (None, Option::None)),
        ("GET", "1.1 204 None", TE, (None, Option::None)),
        ("GET", "1.1 100 Continue", "", (None, Option::None)),
        ("GET", "1.1 103 Hints", CL, (None, Option::None)),
        ("GET", "1.1 101 Switch", TE, (None, Option::None)),
        ("CONNECT", "1.1 200 OK", CL, (None, Option::None)),
        ("CONNECT", "1.1 403 No", CL, (Length(5), Some(5))),
        // One length said more than once.
        ("GET", "1.1 200 OK", &format!("{CL}{CL}"), (Length(5), Some(5))),
        ("GET", "1.1 200 OK", "Content-Length: 5, 5 ,05\r\n", (Length(5), Some(5))),
        ("GET", "1.1 200 OK", "Content-Length: 0005\r\n", (Length(5), Some(5))),
    ] {
        assert_eq!(response(method, start, fields), Ok(want), "{method} {start} {fields:?}");
    }
}

#[test]
fn responses_refused() {
    for (start, fields, why) in [
        ("1.1 200 OK", &format!("{CL}{TE}")[..], LengthAndEncoding),
        ("1.1 200 OK", &format!("{TE}{CL}"), LengthAndEncoding),
        ("1.1 304 Same", &format!("{TE}{CL}"), LengthAndEncoding),
        ("1.1 204 None", &format!("{TE}{CL}"), LengthAndEncoding),
        ("1.1 200 OK", &format!("{CL}Content-Length: 6\r\n"), RepeatedLength),
        ("1.1 200 OK", "Content-Length: 5, 6\r\n", RepeatedLength),
        ("1.1 204 None", "Content-Length: 5, 6\r\n", RepeatedLength),
        ("1.1 200 OK", "Content-Length: 5,\r\n", MalformedLength),
        ("1.1 200 OK", "Content-Length:\r\n", MalformedLength),
        ("1.1 200 OK", "Content-Length: -5\r\n", MalformedLength),
        ("1.1 200 OK", "Content-Length: 0x5\r\n", MalformedLength),
        ("1.1 200 OK", "Content-Length: 5 5\r\n", MalformedLength),
        ("1.1 200 OK", "Content-Length: 18446744073709551615\r\n", LengthTooLarge),
        ("1.1 200 OK", "Content-Length: 99999999999999999999999\r\n", LengthTooLarge),
        ("1.1 200 OK", &format!("{TE}{TE}"), RepeatedEncoding),
        ("1.1 200 OK", "Transfer-Encoding: gzip, chunked\r\n", UnknownEncoding),
        ("1.1 200 OK", "Transfer-Encoding: identity\r\n", UnknownEncoding),
        ("1.1 200 OK", "Transfer-Encoding: xchunked\r\n", UnknownEncoding),
        ("1.0 200 OK", TE, EncodingInHttp10),
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(response(method, start, fields), Err(why), "{method} {start} {fields:?}");
        }
    }
}
