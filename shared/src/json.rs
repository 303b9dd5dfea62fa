//! Strict JSON: refuses what two parsers could read differently.
