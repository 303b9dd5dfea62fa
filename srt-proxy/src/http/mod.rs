//! HTTP codecs: what a client sent, judged and forwarded exactly.
