//! When a rule applies.

use srt_shared::domain::DomainPattern;
use thiserror::Error;

use crate::{
    ask::{Ask, BodyFault},
    graphql::{GraphqlCondition, GraphqlMismatch},
    header::{HeaderCondition, HeaderMismatch},
    json::{JsonCondition, JsonMismatch, check_only},
    path::{PathPattern, Unusual, check_spelling},
    query::{QueryCondition, QueryMismatch},
    reach::Reach,
};

/// All that must be true of a request for a rule to apply. An empty list asks for nothing.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// The host is one of these.
    pub hosts: Vec<DomainPattern>,
    /// The port is one of these.
    pub ports: Vec<u16>,
    /// The method is one of these.
    pub methods: Vec<Box<str>>,
    /// The path matches one of these. Empty: any path, but for allowing only one in the usual spelling.
    pub paths: Vec<PathPattern>,
    /// What the query must have.
    pub query: QueryCondition,
    /// What each of these headers must be.
    pub headers: Vec<HeaderCondition>,
    /// What each of these fields of the JSON body must be.
    pub json: Vec<JsonCondition>,
    /// The only keys that the JSON body may have.
    pub json_only: Option<Vec<Box<str>>>,
    /// What the GraphQL document in the JSON body must be.
    pub graphql: Option<GraphqlCondition>,
}

/// Why a rule does not apply. The text never shows a value of the request that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// Another host.
    #[error("the host is another")]
    Host,
    /// Another port.
    #[error("the port is {0}")]
    Port(u16),
    /// Another method.
    #[error("the method is {0}")]
    Method(Box<str>),
    /// Another path.
    #[error("the path is another")]
    Path,
    /// A path that may be meant, but is not spelled in the usual way.
    #[error(transparent)]
    Spelling(Unusual),
    /// The query.
    #[error(transparent)]
    Query(#[from] QueryMismatch),
    /// A header.
    #[error(transparent)]
    Header(#[from] HeaderMismatch),
    /// The body has to be seen to know.
    #[error("the body has to be looked at")]
    BodyNotShown,
    /// The body is not read as JSON.
    #[error(transparent)]
    Body(#[from] BodyFault),
    /// A field of the body.
    #[error(transparent)]
    Json(#[from] JsonMismatch),
    /// The GraphQL document.
    #[error(transparent)]
    Graphql(#[from] GraphqlMismatch),
}

impl Conditions {
    /// Checks a request. The body comes last, so that it is asked for only where it can make a difference.
    ///
    /// # Errors
    /// The first condition that is not met.
    pub fn check(&self, ask: &Ask<'_>, reach: Reach) -> Result<(), Mismatch> {
        let req = ask.req();
        let is_host = |host| self.hosts.iter().any(|pattern| pattern.matches(host, req.port));
        if !self.hosts.is_empty() && !ask.host().is_some_and(is_host) {
            return Err(Mismatch::Host);
        }
        if !self.ports.is_empty() && !self.ports.contains(&req.port) {
            return Err(Mismatch::Port(req.port));
        }
        self.check_method(&req.method, reach)?;
        self.check_path(&req.path, reach)?;
        self.query.check(req.query.as_deref(), reach)?;
        for header in &self.headers {
            header.check(&req.headers, reach)?;
        }
        self.check_body(ask, reach)
    }

    /// Whether the body has to be seen.
    pub fn need_body(&self) -> bool {
        !self.json.is_empty() || self.json_only.is_some() || self.graphql.is_some()
    }

    fn check_method(&self, method: &str, reach: Reach) -> Result<(), Mismatch> {
        let is_same = |own: &str| match reach {
            Reach::Narrow => own == method,
            Reach::Wide => own.eq_ignore_ascii_case(method),
        };
        if self.methods.is_empty() || self.methods.iter().any(|own| is_same(own)) {
            return Ok(());
        }
        Err(Mismatch::Method(method.into()))
    }

    fn check_path(&self, path: &str, reach: Reach) -> Result<(), Mismatch> {
        let spelling = match reach {
            Reach::Narrow => check_spelling(path),
            Reach::Wide => Ok(()),
        };
        let matches = match self.paths.as_slice() {
            [] => spelling.is_ok(),
            paths => paths.iter().any(|pattern| pattern.matches(path, reach)),
        };
        match (matches, spelling) {
            (true, _) => Ok(()),
            (false, Err(unusual)) => Err(Mismatch::Spelling(unusual)),
            (false, Ok(())) => Err(Mismatch::Path),
        }
    }

    fn check_body(&self, ask: &Ask<'_>, reach: Reach) -> Result<(), Mismatch> {
        if !self.need_body() {
            return Ok(());
        }
        let body = match ask.json().ok_or(Mismatch::BodyNotShown)? {
            Ok(body) => body,
            // What cannot be read might be what is to be denied.
            Err(_) if reach == Reach::Wide => return Ok(()),
            Err(fault) => return Err(fault.clone().into()),
        };
        for field in &self.json {
            field.check(body, reach)?;
        }
        if let Some(keys) = &self.json_only {
            check_only(body, keys)?;
        }
        if let Some(graphql) = &self.graphql {
            graphql.check(body, ask.req().query.as_deref(), reach)?;
        }
        Ok(())
    }
}
