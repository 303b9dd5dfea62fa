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

/// Copies plain ASCII whole, and asks `wide` for bytes of 0x7f and above.
fn write_escaped(out: &mut Vec<u8>, bytes: &[u8], wide: impl Fn(&mut Vec<u8>, u8)) {
    out.push(b'"');
    // Blocks small enough to be mostly plain, long enough for the check to be worth its vector instructions.
    for block in bytes.chunks(64) {
        if block.iter().fold(true, |all, &byte| all & is_plain(byte)) {
            out.extend_from_slice(block);
        } else {
            block.iter().for_each(|&byte| write_byte(out, byte, &wide));
        }
    }
    out.push(b'"');
}

fn write_byte(out: &mut Vec<u8>, byte: u8, wide: impl Fn(&mut Vec<u8>, u8)) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0..0x20 => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
        }
        0x20..0x7f => out.push(byte),
        0x7f.. => wide(out, byte),
    }
}

/// Whether a byte stands in a JSON string as itself. Without branches, so that a block is checked at once.
fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_str(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn bytes_read_back_as_latin1(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut out = Vec::new();
            write_latin1(&mut out, &bytes);
            let text: String = bytes.iter().copied().map(char::from).collect();
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn numbers_are_written_in_decimal(value in prop_oneof![any::<u64>(), 0..12u64]) {
            let mut out = Vec::new();
            write_u64(&mut out, value);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
