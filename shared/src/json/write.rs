/// Appends a string with its quotes.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    write_escaped(out, text.as_bytes(), |out, byte| out.push(byte));
}

/// Appends bytes as a string with its quotes, each byte read as the Latin-1 character of that number: the way
/// header values travel in a frame, since HTTP gives them no encoding (RFC 9110 section 5.5).
pub fn write_latin1(out: &mut Vec<u8>, bytes: &[u8]) {
    write_escaped(out, bytes, |out, byte| match byte {
        0x80.. => out.extend_from_slice(&[0xc0 | (byte >> 6), 0x80 | (byte & 0x3f)]),
        _ => out.push(byte),
    });
}

/// Appends a whole number.
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// Copies runs of plain ASCII whole, and asks `wide` for bytes of 0x80 and above.
fn write_escaped(out: &mut Vec<u8>, bytes: &[u8], wide: impl Fn(&mut Vec<u8>, u8)) {
    out.push(b'"');
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&b| !IS_PLAIN[usize::from(b)]) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            control @ 0..0x20 => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let (high, low) = (usize::from(control >> 4), usize::from(control & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
            other => wide(out, other),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// What may stand in a JSON string as itself: printable ASCII but quote and backslash, and DEL.
const IS_PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x20;
    while byte < 0x80 {
        table[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    table
};
