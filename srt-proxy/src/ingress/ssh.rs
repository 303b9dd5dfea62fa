//! A refusal that an SSH client prints. Through a SOCKS `ProxyCommand` it would otherwise see a connection that just
//! ends, and blame the network.

/// Bytes of an SSH server that disconnects before the key exchange (RFC 4253, sections 4.2, 6 and 11.1), giving
/// `reason`. OpenSSH prints it as it is, if it is ASCII and not too long.
pub fn disconnect(reason: &str) -> Vec<u8> {
    const DISCONNECT: u8 = 1;
    const HOST_NOT_ALLOWED_TO_CONNECT: u32 = 1;
    let mut payload = vec![DISCONNECT];
    payload.extend_from_slice(&HOST_NOT_ALLOWED_TO_CONNECT.to_be_bytes());
    payload.extend_from_slice(&(reason.len() as u32).to_be_bytes());
    payload.extend_from_slice(reason.as_bytes());
    // No language tag.
    payload.extend_from_slice(&0u32.to_be_bytes());

    // Without encryption a packet is padded to a multiple of 8, with 4 bytes at least.
    let unpadded = 4 + 1 + payload.len();
    let padding = 4 + (8 - (unpadded + 4) % 8) % 8;
    let mut bytes = b"SSH-2.0-srt\r\n".to_vec();
    bytes.extend_from_slice(&((1 + payload.len() + padding) as u32).to_be_bytes());
    bytes.push(padding as u8);
    bytes.extend_from_slice(&payload);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_well_formed_whatever_the_length_of_the_reason() {
        for length in 0..40 {
            let reason = "r".repeat(length);
            let bytes = disconnect(&reason);
            let packet = bytes.strip_prefix(b"SSH-2.0-srt\r\n").unwrap();
            let stated = u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize;
            assert_eq!(packet.len(), stated + 4);
            assert_eq!(packet.len() % 8, 0);
            let padding = usize::from(packet[4]);
            assert!((4..256).contains(&padding));
            assert_eq!(packet[5], 1);
            assert_eq!(&packet[14..14 + length], reason.as_bytes());
            assert_eq!(packet.len() - padding, 14 + length + 4);
        }
    }
}
