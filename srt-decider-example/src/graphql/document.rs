use std::fmt;

use thiserror::Error;

use super::lexer::{Token, tokenize};

/// What a GraphQL document asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<'a> {
    /// Every operation in it, whichever is carried out.
    pub operations: Vec<Operation<'a>>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its kind.
    pub kind: OperationKind,
    /// The fields it begins with, by their names, not their aliases.
    pub root_fields: Vec<&'a str>,
    /// Whether further root fields come from a fragment.
    pub has_root_fragment: bool,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Reads.
    Query,
    /// Changes.
    Mutation,
    /// Reads for as long as the connection lasts.
    Subscription,
}

/// Why a document is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// By byte offset.
    #[error("the document has an unexpected character at byte {0}")]
    Character(usize),
    /// Older servers read it as several strings.
    #[error("the document has a block string")]
    BlockString,
    /// Brackets that do not close, a definition that is neither operation nor fragment.
    #[error("the document is no list of operations and fragments")]
    Structure,
    /// Only fragments, or nothing.
    #[error("the document has no operation")]
    NoOperation,
}

impl OperationKind {
    /// Reads the keyword.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "query" => Some(Self::Query),
            "mutation" => Some(Self::Mutation),
            "subscription" => Some(Self::Subscription),
            _ => None,
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        })
    }
}

impl<'a> Document<'a> {
    /// Reads a document (GraphQL specification of October 2021, section 2.2), without knowing a schema.
    ///
    /// # Errors
    /// [`DocumentError`] for whatever is not understood.
    pub fn parse(text: &'a str) -> Result<Self, DocumentError> {
        let mut parser = Parser { tokens: tokenize(text)?, at: 0 };
        let mut operations = Vec::new();
        while let Some(token) = parser.peek() {
            match token {
                Token::Punctuator(b'{') => operations.push(parser.operation(OperationKind::Query)?),
                Token::Name("fragment") => parser.fragment()?,
                Token::Name(word) => {
                    let kind = OperationKind::parse(word).ok_or(DocumentError::Structure)?;
                    parser.at += 1;
                    operations.push(parser.operation(kind)?);
                }
                _ => return Err(DocumentError::Structure),
            }
        }
        if operations.is_empty() { Err(DocumentError::NoOperation) } else { Ok(Self { operations }) }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, token: Token<'_>) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<&'a str, DocumentError> {
        let Some(Token::Name(name)) = self.peek() else { return Err(DocumentError::Structure) };
        self.at += 1;
        Ok(name)
    }

    /// Behind the keyword: name, variables, directives, selection.
    fn operation(&mut self, kind: OperationKind) -> Result<Operation<'a>, DocumentError> {
        if let Some(Token::Name(_)) = self.peek() {
            self.at += 1;
        }
        self.optional_group(b'(')?;
        self.directives()?;
        let mut operation = Operation { kind, root_fields: Vec::new(), has_root_fragment: false };
        if !self.take(Token::Punctuator(b'{')) {
            return Err(DocumentError::Structure);
        }
        while !self.take(Token::Punctuator(b'}')) {
            if self.take(Token::Spread) {
                operation.has_root_fragment = true;
                self.fragment_selection()?;
            } else {
                operation.root_fields.push(self.field()?);
            }
        }
        if operation.root_fields.is_empty() && !operation.has_root_fragment {
            return Err(DocumentError::Structure);
        }
        Ok(operation)
    }

    /// `alias: name(arguments) @directives { … }`; gives the name.
    fn field(&mut self) -> Result<&'a str, DocumentError> {
        let mut name = self.name()?;
        if self.take(Token::Punctuator(b':')) {
            name = self.name()?;
        }
        self.optional_group(b'(')?;
        self.directives()?;
        self.optional_group(b'{')?;
        Ok(name)
    }

    /// Behind the `...`: a name, or `on Type` and directives and a selection.
    fn fragment_selection(&mut self) -> Result<(), DocumentError> {
        let is_inline = match self.peek() {
            Some(Token::Name("on")) => {
                self.at += 1;
                self.name()?;
                true
            }
            Some(Token::Name(_)) => {
                self.at += 1;
                false
            }
            _ => true,
        };
        self.directives()?;
        if is_inline { self.group(b'{') } else { Ok(()) }
    }

    fn fragment(&mut self) -> Result<(), DocumentError> {
        self.at += 1;
        if self.name()? == "on" || self.name()? != "on" {
            return Err(DocumentError::Structure);
        }
        self.name()?;
        self.directives()?;
        self.group(b'{')
    }

    fn directives(&mut self) -> Result<(), DocumentError> {
        while self.take(Token::Punctuator(b'@')) {
            self.name()?;
            self.optional_group(b'(')?;
        }
        Ok(())
    }

    fn optional_group(&mut self, open: u8) -> Result<(), DocumentError> {
        if self.peek() == Some(Token::Punctuator(open)) { self.group(open) } else { Ok(()) }
    }

    /// Passes over a group with everything in it; brackets must pair up.
    fn group(&mut self, open: u8) -> Result<(), DocumentError> {
        if self.peek() != Some(Token::Punctuator(open)) {
            return Err(DocumentError::Structure);
        }
        let mut closing = Vec::new();
        loop {
            let token = self.peek().ok_or(DocumentError::Structure)?;
            self.at += 1;
            match token {
                Token::Punctuator(b'(') => closing.push(b')'),
                Token::Punctuator(b'[') => closing.push(b']'),
                Token::Punctuator(b'{') => closing.push(b'}'),
                Token::Punctuator(byte @ (b')' | b']' | b'}')) if closing.pop() != Some(byte) => {
                    return Err(DocumentError::Structure);
                }
                _ => {}
            }
            if closing.is_empty() {
                return Ok(());
            }
        }
    }
}
