//! TLS towards the client (minted leaves) and towards the upstream (verified).
