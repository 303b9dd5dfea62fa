use std::{fmt, num::NonZeroU16, str::FromStr};

use thiserror::Error;

use crate::{
    domain::{Authority, AuthorityError, Host},
    secret::Secret,
};

/// Where a parent proxy is and how to speak to it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    /// How to speak to it.
    pub scheme: ProxyScheme,
    /// Its host.
    pub host: Host,
    /// Its port; the scheme's own where none was written.
    pub port: NonZeroU16,
    /// User and password, percent-decoded.
    pub login: Option<ProxyLogin>,
}

/// A user and password for a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyLogin {
    /// The user.
    pub user: String,
    /// The password; may be empty.
    pub password: Secret,
}

/// What a parent proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyScheme {
    /// HTTP in clear text.
    Http,
    /// HTTP over TLS.
    Https,
    /// SOCKS5 with names resolved by the proxy.
    Socks5h,
}

impl ProxyScheme {
    fn default_port(self) -> NonZeroU16 {
        let port = match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5h => 1080,
        };
        NonZeroU16::new(port).expect("invariant: the ports above are not zero")
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5h => "socks5h",
        }
    }
}

impl FromStr for ProxyUrl {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(ProxyUrlError::NoUrl)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyScheme::Http,
            "https" => ProxyScheme::Https,
            "socks5h" => ProxyScheme::Socks5h,
            _ => return Err(ProxyUrlError::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(ProxyUrlError::Path);
        }
        let (login, authority) = match rest.rsplit_once('@') {
            Some((login, authority)) => (Some(parse_login(login)?), authority),
            None => (None, rest),
        };
        let authority = Authority::parse(authority)?;
        let port = authority.port.unwrap_or_else(|| scheme.default_port());
        Ok(Self { scheme, host: authority.host, port, login })
    }
}

/// Without the login.
impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.login.is_some() { "…@" } else { "" };
        write!(f, "{}://{login}{}", self.scheme.name(), self.host.authority(self.port.get(), 0))
    }
}

/// What is wrong with the URL of a parent proxy. Never repeats it: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProxyUrlError {
    /// No `://`.
    #[error("expected a URL, as in http://proxy.example.com:3128")]
    NoUrl,
    /// Another scheme.
    #[error("a parent proxy is an http://, https:// or socks5h:// URL")]
    Scheme,
    /// Something behind the authority.
    #[error("the URL of a parent proxy has no path, query or fragment")]
    Path,
    /// A `%` that two hexadecimal digits do not follow, or bytes that are not UTF-8.
    #[error("user or password of the URL are not percent-encoded UTF-8")]
    Login,
    /// The host or the port.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

fn parse_login(text: &str) -> Result<ProxyLogin, ProxyUrlError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let user = String::from_utf8(decode(user)?).map_err(|_| ProxyUrlError::Login)?;
    Ok(ProxyLogin { user, password: decode(password)?.into() })
}

fn decode(text: &str) -> Result<Vec<u8>, ProxyUrlError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        out.push(if *first == b'%' {
            let digits = rest.split_at_checked(2).ok_or(ProxyUrlError::Login)?;
            rest = digits.1;
            hex(digits.0).ok_or(ProxyUrlError::Login)?
        } else {
            *first
        });
    }
    Ok(out)
}

fn hex(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |sum, &digit| Some(sum * 16 + char::from(digit).to_digit(16)?)).map(|n| n as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_users_write() {
        let url: ProxyUrl = "https://us%20er:p%40:w@proxy.example.com:3128/".parse().unwrap();
        assert_eq!((url.scheme, url.port.get()), (ProxyScheme::Https, 3128));
        assert_eq!(url.host.to_string(), "proxy.example.com");
        let login = url.login.clone().unwrap();
        assert_eq!((login.user.as_str(), login.password.expose()), ("us er", b"p@:w".as_slice()));
        assert_eq!(format!("{url:?}"), "https://…@proxy.example.com:3128");
        for (text, port) in [("http://p.example", 80), ("HTTPS://p.example", 443), ("socks5h://[::1]", 1080)]
        {
            assert_eq!(text.parse::<ProxyUrl>().unwrap().port.get(), port, "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_without_repeating_it() {
        for text in [
            "",
            "proxy:3128",
            "ftp://p.example",
            "socks5://p.example",
            "http://",
            "http://p.example/x",
            "http://p.example:0",
            "http://p.example:99999",
            "http://u:%zz@p.example",
            "http://u:%f@p.example",
            "http://u:pass@",
            "http://a b",
            "http://p.example?x",
            "http://::1",
        ] {
            let error = text.parse::<ProxyUrl>().unwrap_err();
            assert!(!error.to_string().contains("pass@"), "{error}");
        }
    }
}
