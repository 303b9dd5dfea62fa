use crate::{
    Row, Verdict,
    Verdict::{Allow, Deny},
};

const NO_RULE: Verdict = Deny("otherwise");

pub const ROWS: &[Row] = &[
    ("GET https://index.crates.io/se/rd/serde", &[], "", Allow("crates.io: index")),
    ("GET https://index.crates.io/config.json", &[], "", Allow("crates.io: index")),
    ("GET https://static.crates.io/crates/serde/serde-1.0.0.crate", &[], "", Allow("crates.io: crates")),
    ("PUT https://crates.io/api/v1/crates/new", &[], "x", NO_RULE),
    ("DELETE https://crates.io/api/v1/crates/serde/1.0.0/yank", &[], "", NO_RULE),
    ("GET https://crates.io/api/v1/me", &[], "", NO_RULE),
    ("GET https://registry.npmjs.org/left-pad", &[], "", Allow("npm")),
    ("GET https://registry.npmjs.org/@types%2fnode", &[], "", Allow("npm")),
    ("GET https://registry.npmjs.org/@types%2Fnode", &[], "", Allow("npm")),
    ("GET https://registry.npmjs.org/@types/node/-/node-1.0.0.tgz", &[], "", Allow("npm")),
    ("GET https://registry.npmjs.org/@types%2f..", &[], "", Deny("dot component")),
    ("GET https://registry.npmjs.org/@types%2f%2e%2e", &[], "", Deny("dot component")),
    ("GET https://registry.npmjs.org/a%2fb", &[], "", Deny("some servers decode")),
    ("GET https://registry.npmjs.org/-/whoami", &[], "", NO_RULE),
    ("GET https://registry.npmjs.org/-/npm/v1/tokens", &[], "", NO_RULE),
    ("GET https://registry.npmjs.org/-/v1/search?text=secret", &[], "", NO_RULE),
    ("GET https://registry.npmjs.org/left-pad?secret", &[], "", NO_RULE),
    ("GET https://registry.npmjs.org/left-pad", &[], "secret", Deny("bodyless_method_body")),
    ("GET https://registry.npmjs.org/left-pad", &["X-HTTP-Method: PUT"], "", Deny("another method")),
    ("PUT https://registry.npmjs.org/left-pad", &["Content-Type: application/json"], "{}", NO_RULE),
    ("POST https://registry.npmjs.org/-/npm/v1/security/advisories/bulk", &[], "{}", NO_RULE),
    ("GET https://pypi.org/simple/requests/", &[], "", Allow("PyPI: index")),
    ("GET https://pypi.org/simple/../manage/account/", &[], "", Deny("dot component")),
    ("POST https://upload.pypi.org/legacy/", &[], "x", Deny("no rule names this host")),
    (
        "GET https://files.pythonhosted.org/packages/aa/bb/requests-2.0-py3-none-any.whl",
        &[],
        "",
        Allow("PyPI: files"),
    ),
    (
        "GET https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.0.0+incompatible.zip",
        &[],
        "",
        Allow("Go: modules"),
    ),
    ("GET https://proxy.golang.org/golang.org/x/net/@latest", &[], "", Allow("Go: modules")),
    ("GET https://sum.golang.org/lookup/golang.org/x/net@v0.1.0", &[], "", Allow("Go: checksums")),
    ("GET http://registry.npmjs.org/left-pad", &[], "", Deny("no rule names this host")),
];
