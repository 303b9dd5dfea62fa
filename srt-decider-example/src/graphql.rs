//! Conditions on a GraphQL request: which operations its document has, and which fields they begin with.
//!
//! A look for the word `mutation` is not enough: operations stand in any order, behind fragments and comments,
//! and a field can hide behind an alias. So the document is read; what is not read whole never matches an allow.

use serde_json::Value;
use thiserror::Error;

use crate::{
    json::{JsonMismatch, check_only, only_key},
    reach::Reach,
};

mod document;
mod lexer;

pub use document::{Document, DocumentError, OperationKind};

/// What a GraphQL request must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphqlCondition {
    /// The kinds of operation: every one in the document must be among them.
    pub operations: Vec<OperationKind>,
    /// The names of root fields, without aliases: every one must be among them. Empty: any.
    pub fields: Vec<Box<str>>,
}

/// Why a GraphQL request does not match.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphqlMismatch {
    /// Not an object of `query`, `variables` and `operationName`: a batch, a stored query, an extension.
    #[error("GraphQL: {0}")]
    Envelope(JsonMismatch),
    /// `query` is no string.
    #[error("GraphQL: the body has no string `query`")]
    NoQuery,
    /// Servers take the document from there, before the body.
    #[error("GraphQL: the target has a query of its own")]
    UrlQuery,
    /// Not read.
    #[error("GraphQL: {0}")]
    Document(#[from] DocumentError),
    /// An operation of another kind.
    #[error("GraphQL: the document has a {0}")]
    Operation(OperationKind),
    /// Another root field.
    #[error("GraphQL: the root field {0:?} is not among those of the rule")]
    Field(Box<str>),
    /// What it stands for would have to be looked up.
    #[error("GraphQL: a fragment at the root hides its fields")]
    RootFragment,
}

impl GraphqlCondition {
    /// Checks the body of a request, and the query of its target.
    ///
    /// # Errors
    /// [`GraphqlMismatch`]: what is wrong.
    pub fn check(&self, body: &Value, url_query: Option<&str>, reach: Reach) -> Result<(), GraphqlMismatch> {
        let document = match read_document(body, url_query) {
            Ok(document) => document,
            Err(_) if reach == Reach::Wide => return Ok(()),
            Err(mismatch) => return Err(mismatch),
        };
        match reach {
            Reach::Narrow => self.check_all(&document),
            Reach::Wide => self.check_any(&document),
        }
    }

    fn check_all(&self, document: &Document<'_>) -> Result<(), GraphqlMismatch> {
        for operation in &document.operations {
            if !self.operations.contains(&operation.kind) {
                return Err(GraphqlMismatch::Operation(operation.kind));
            }
            if self.fields.is_empty() {
                continue;
            }
            if operation.has_root_fragment {
                return Err(GraphqlMismatch::RootFragment);
            }
            let is_other = |field: &&&str| !self.fields.iter().any(|own| **own == ***field);
            if let Some(field) = operation.root_fields.iter().find(is_other) {
                return Err(GraphqlMismatch::Field((*field).into()));
            }
        }
        Ok(())
    }

    fn check_any(&self, document: &Document<'_>) -> Result<(), GraphqlMismatch> {
        let mut last = GraphqlMismatch::NoQuery;
        for operation in &document.operations {
            let has_field = || {
                self.fields.is_empty()
                    || operation.has_root_fragment
                    || operation
                        .root_fields
                        .iter()
                        .any(|field| self.fields.iter().any(|own| **own == **field))
            };
            if self.operations.contains(&operation.kind) && has_field() {
                return Ok(());
            }
            last = GraphqlMismatch::Operation(operation.kind);
        }
        Err(last)
    }
}

fn read_document<'a>(body: &'a Value, url_query: Option<&str>) -> Result<Document<'a>, GraphqlMismatch> {
    const KEYS: [&str; 3] = ["query", "variables", "operationName"];
    if url_query.is_some() {
        return Err(GraphqlMismatch::UrlQuery);
    }
    check_only(body, &KEYS.map(Into::into)).map_err(GraphqlMismatch::Envelope)?;
    let Value::Object(map) = body else { return Err(GraphqlMismatch::NoQuery) };
    let query = only_key(map, "query", || "query".into()).map_err(GraphqlMismatch::Envelope)?;
    let text = query.and_then(Value::as_str).ok_or(GraphqlMismatch::NoQuery)?;
    Ok(Document::parse(text)?)
}

#[cfg(test)]
mod tests;
