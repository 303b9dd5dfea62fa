//! Header field names, and the folding under which two spellings are the same name.
