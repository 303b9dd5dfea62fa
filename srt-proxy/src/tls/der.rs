//! The little DER that splicing a certificate takes (X.690 sections 8.1 and 10.1).

pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const SEQUENCE: u8 = 0x30;

/// Takes the next element off `input`: the whole of it and its contents. `None` if `input` is no DER, or
/// the tag has more than one byte, which no field of a certificate has.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (&first, after_length) = input.get(1..)?.split_first()?;
    let (length, header) = match first {
        0..=0x7f => (usize::from(first), 2),
        0x81..=0x84 => {
            let octets = after_length.get(..usize::from(first - 0x80))?;
            let length = octets.iter().fold(0, |length, &octet| (length << 8) | usize::from(octet));
            (length, 2 + octets.len())
        }
        _ => return None,
    };
    let (element, rest) = input.split_at_checked(header.checked_add(length)?)?;
    *input = rest;
    Some((element, &element[header..]))
}

/// An element whose contents are `parts`, one behind the other.
pub(super) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(length + 6);
    out.push(tag);
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let octets = length.to_be_bytes();
        let octets = &octets[(length.leading_zeros() / 8) as usize..];
        out.push(0x80 | octets.len() as u8);
        out.extend_from_slice(octets);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_take_the_shortest_form() {
        for (length, header) in [
            (0, &[0x30, 0x00][..]),
            (127, &[0x30, 0x7f]),
            (128, &[0x30, 0x81, 0x80]),
            (255, &[0x30, 0x81, 0xff]),
            (256, &[0x30, 0x82, 0x01, 0x00]),
            (65_536, &[0x30, 0x83, 0x01, 0x00, 0x00]),
        ] {
            assert_eq!(&element(SEQUENCE, &[&vec![0; length]])[..header.len()], header, "length {length}");
        }
    }

    #[test]
    fn what_is_no_element_is_not_taken() {
        for bad in [&b""[..], b"\x30", b"\x30\x01", b"\x30\x81", b"\x30\x80\x00\x00", b"\x30\x85\0\0\0\0\0"] {
            let mut input = bad;
            assert_eq!(take(&mut input), None, "{bad:x?}");
            assert_eq!(input, bad);
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..4), tail: Vec<u8>) {
            let written = element(BIT_STRING, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let input = [written.clone(), tail.clone()].concat();
            let mut rest = &input[..];
            let (whole, contents) = take(&mut rest).unwrap();
            prop_assert_eq!(whole, &written[..]);
            prop_assert_eq!(contents, &parts.concat()[..]);
            prop_assert_eq!(rest, &tail[..]);
        }
    }
}
