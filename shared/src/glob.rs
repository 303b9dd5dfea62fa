//! Path patterns in the syntax of the reference, matched one component at a time, so that a walk can leave out
//! every directory beneath which nothing can match.
//!
//! `*` and `?` match within a component; `**` as a whole component matches any number of components, joined to
//! other text any run of characters, slashes too; `[…]` is a set of characters and ranges, and what stands in it
//! is a member: there is no negation, no class and no escape. Brackets that spell no set (`[]`, a range that runs
//! backwards) are the text they are. A set that has the slash in it matches one.

#[cfg(test)]
mod tests;

/// A pattern, anchored at both ends, over paths relative to a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    tokens: Vec<Token>,
}

/// How far a pattern has got at the end of a directory's path: what an entry of that directory continues from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position(Vec<u32>);

/// What one more component does to a [`Position`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Whether the path that ends with this component matches.
    pub matches: bool,
    /// Where entries beneath it continue; `None` if none can match.
    pub below: Option<Position>,
}

/// Whether the text has a character that means something in a pattern.
pub fn has_glob_characters(text: &str) -> bool {
    text.contains(['*', '?', '[', ']'])
}

impl Pattern {
    /// Reads a pattern. Every text is one.
    pub fn parse(text: &str) -> Self {
        Self { tokens: tokens(text) }
    }

    /// Splits a pattern at the last slash before its first wildcard: the directory it starts from, with that
    /// slash, and the pattern beneath that. `Err` with the text it matches if it has no wildcard at all.
    pub fn split(text: &str) -> Result<(String, Self), String> {
        let tokens = tokens(text);
        let literal: String = tokens.iter().map_while(Token::literal).collect();
        if literal.chars().count() == tokens.len() {
            return Err(literal);
        }
        let start = &literal[..literal.rfind('/').map_or(0, |slash| slash + 1)];
        let rest = tokens[start.chars().count()..].to_vec();
        Ok((start.into(), Self { tokens: rest }))
    }

    /// The pattern for everything in what this one matches.
    pub fn contents(mut self) -> Self {
        self.tokens.extend([Token::Char('/'), Token::Across]);
        self
    }

    /// Where the entries of the directory it starts from continue.
    pub fn start(&self) -> Position {
        let mut active = Vec::new();
        self.arrive(0, &mut active);
        Position(active)
    }

    /// Takes the name of an entry. Names that are not UTF-8 are matched by wildcards only.
    pub fn step(&self, from: &Position, name: &[u8]) -> Step {
        let mut active = from.0.clone();
        let mut next = Vec::with_capacity(active.len() + 1);
        for chunk in name.utf8_chunks() {
            for c in chunk.valid().chars() {
                self.advance(&mut active, &mut next, Unit::Char(c));
            }
            for _ in chunk.invalid() {
                self.advance(&mut active, &mut next, Unit::Invalid);
            }
            if active.is_empty() {
                return Step { matches: false, below: None };
            }
        }
        let matches = active.last() == Some(&self.end());
        self.advance(&mut active, &mut next, Unit::Char('/'));
        active.retain(|&at| at != self.end());
        Step { matches, below: (!active.is_empty()).then_some(Position(active)) }
    }

    /// Whether a whole relative path matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        let mut at = self.start();
        let mut components = path.split(|&b| b == b'/').peekable();
        while let Some(name) = components.next() {
            let Step { matches, below } = self.step(&at, name);
            match (components.peek(), below) {
                (None, _) => return matches,
                (Some(_), Some(position)) => at = position,
                (Some(_), None) => return false,
            }
        }
        false
    }

    fn end(&self) -> u32 {
        u32::try_from(self.tokens.len()).expect("invariant: a pattern is far shorter than 4 GiB")
    }

    /// Moves every active place over one character. `active` stays sorted and without doubles.
    fn advance(&self, active: &mut Vec<u32>, next: &mut Vec<u32>, unit: Unit) {
        next.clear();
        for &at in &*active {
            let Some(token) = self.tokens.get(at as usize) else { continue };
            match token {
                Token::Within if unit != Unit::SLASH => self.arrive(at, next),
                Token::Across => self.arrive(at, next),
                // Within `**/` a component boundary is a place to go on from, and not the only one.
                Token::Directories => {
                    insert(next, at);
                    if unit == Unit::SLASH {
                        self.arrive(at + 1, next);
                    }
                }
                token if token.takes(unit) => self.arrive(at + 1, next),
                _ => {}
            }
        }
        std::mem::swap(active, next);
    }

    /// Adds a place, and those behind it that an empty match reaches.
    fn arrive(&self, mut at: u32, active: &mut Vec<u32>) {
        loop {
            insert(active, at);
            match self.tokens.get(at as usize) {
                Some(Token::Within | Token::Across | Token::Directories) => at += 1,
                _ => return,
            }
        }
    }
}

fn insert(active: &mut Vec<u32>, at: u32) {
    if let Err(place) = active.binary_search(&at) {
        active.insert(place, at);
    }
}

/// One character of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Char(char),
    /// A byte that is part of no character.
    Invalid,
}

impl Unit {
    const SLASH: Self = Self::Char('/');
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Within,
    /// `**` joined to other text, or at the end.
    Across,
    /// `**/` at the start of a component: nothing, or whole components with their slashes.
    Directories,
    /// `[…]`: inclusive ranges.
    Set(Vec<(char, char)>),
}

impl Token {
    fn literal(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            _ => None,
        }
    }

    fn takes(&self, unit: Unit) -> bool {
        match (self, unit) {
            (Self::Char(own), Unit::Char(c)) => *own == c,
            (Self::One, unit) => unit != Unit::SLASH,
            (Self::Set(ranges), Unit::Char(c)) => ranges.iter().any(|&(low, high)| (low..=high).contains(&c)),
            _ => false,
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match c {
            '*' => {
                let stars = chars[at..].iter().take_while(|&&c| c == '*').count();
                let opens = matches!(tokens.last(), None | Some(Token::Char('/') | Token::Directories));
                at += stars;
                tokens.push(match (stars, chars.get(at)) {
                    (1, _) => Token::Within,
                    (_, Some('/')) if opens => {
                        at += 1;
                        Token::Directories
                    }
                    _ => Token::Across,
                });
            }
            '?' => {
                tokens.push(Token::One);
                at += 1;
            }
            '[' => {
                let Some(length) = chars[at + 1..].iter().position(|&c| c == ']') else {
                    tokens.push(Token::Char('['));
                    at += 1;
                    continue;
                };
                match set(&chars[at + 1..at + 1 + length]) {
                    Some(ranges) => tokens.push(Token::Set(ranges)),
                    None => tokens.extend(chars[at..at + length + 2].iter().copied().map(Token::Char)),
                }
                at += length + 2;
            }
            c => {
                tokens.push(Token::Char(c));
                at += 1;
            }
        }
    }
    tokens
}

/// The ranges of a set; `None` if the characters spell none.
fn set(members: &[char]) -> Option<Vec<(char, char)>> {
    let mut ranges = Vec::new();
    let mut rest = members;
    while let Some(&low) = rest.first() {
        let high = match rest {
            [_, '-', high, ..] => *high,
            _ => low,
        };
        if high < low {
            return None;
        }
        rest = &rest[if rest.len() > 2 && rest[1] == '-' { 3 } else { 1 }..];
        ranges.push((low, high));
    }
    (!ranges.is_empty()).then_some(ranges)
}
