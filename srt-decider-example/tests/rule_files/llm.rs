use crate::{
    JSON, Row, Verdict,
    Verdict::{Allow, Deny},
};

const SMALL: &[&str] = &["Content-Type: application/json", "X-Spend: small"];
const LARGE: &[&str] = &["Content-Type: application/json", "X-Spend: large"];
const UNSAID: Verdict = Deny("does not say");
const MORE: Verdict = Deny("more than it says");
const CALL: &str = r#"{"model":"gpt-5-mini","max_output_tokens":1024,"input":"hello"}"#;

pub const ROWS: &[Row] = &[
    ("POST https://api.openai.com/v1/responses", SMALL, CALL, Allow("a small call")),
    ("POST https://api.openai.com/v1/responses", LARGE, CALL, Allow("a large call")),
    (
        "POST https://api.openai.com/v1/responses",
        LARGE,
        r#"{"model":"gpt-5","max_output_tokens":16384}"#,
        Allow("a large call"),
    ),
    ("GET https://api.openai.com/v1/models", &[], "", Allow("which models")),
    // The header: missing, twice, in another spelling, another word.
    ("POST https://api.openai.com/v1/responses", JSON, CALL, UNSAID),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X-Spend: small", "X-Spend: large"],
        CALL,
        UNSAID,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X_Spend: small"],
        CALL,
        UNSAID,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X-Spend: small", "X.Spend: large"],
        CALL,
        UNSAID,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X-Spend: unlimited"],
        CALL,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X-Spend: SMALL"],
        CALL,
        MORE,
    ),
    // The body: more than the header says, or not to be read for sure.
    ("POST https://api.openai.com/v1/responses", SMALL, r#"{"model":"gpt-5","max_output_tokens":10}"#, MORE),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":1025}"#,
        MORE,
    ),
    ("POST https://api.openai.com/v1/responses", SMALL, r#"{"model":"gpt-5-mini"}"#, MORE),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":1e9}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":"10"}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":null}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":10,"max_output_tokens":99999}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":10,"MAX_output_tokens":99999}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","model":"gpt-5-pro","max_output_tokens":10}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        SMALL,
        r#"{"model":"gpt-5-mini","max_output_tokens":10,"service_tier":"priority"}"#,
        MORE,
    ),
    (
        "POST https://api.openai.com/v1/responses",
        LARGE,
        r#"{"model":"gpt-5","max_output_tokens":10,"background":true}"#,
        MORE,
    ),
    ("POST https://api.openai.com/v1/responses", LARGE, r#"{"model":"o3-pro","max_output_tokens":10}"#, MORE),
    ("POST https://api.openai.com/v1/responses", &["Content-Type: text/plain", "X-Spend: small"], CALL, MORE),
    ("POST https://api.openai.com/v1/responses?model=gpt-5-pro", SMALL, CALL, MORE),
    (
        "POST https://api.openai.com/v1/responses",
        &["Content-Type: application/json", "X-Spend: small", "Connection: content-type"],
        CALL,
        MORE,
    ),
    // Other paths.
    ("POST https://api.openai.com/v1/responses/", SMALL, CALL, MORE),
    ("POST https://api.openai.com/v1/./responses", SMALL, CALL, MORE),
    ("POST https://api.openai.com/v1/images/generations", SMALL, CALL, Deny("otherwise")),
    ("POST https://api.openai.com/v1/models/../responses", SMALL, CALL, MORE),
    ("DELETE https://api.openai.com/v1/models/gpt-5", &[], "", Deny("otherwise")),
    ("GET https://api.openai.com/v1/organization/admin_api_keys", &[], "", Deny("otherwise")),
];
