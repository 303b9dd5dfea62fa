use super::{error::ProtocolError, hello::Hello, verdict::Verdict};

/// What a decider sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromDecider {
    /// Once, first.
    Hello(Hello),
    /// The answer to a request.
    Verdict(Verdict),
}

/// Reads the payload of a frame from a decider.
///
/// # Errors
/// [`ProtocolError`]: the link must end.
pub fn parse_from_decider(payload: &[u8]) -> Result<FromDecider, ProtocolError> {
    let _ = payload;
    Err(ProtocolError::MissingKey("t"))
}
