//! Which descriptors reach the command.

use std::ffi::c_uint;
use std::os::fd::RawFd;

use super::failure::{During, Failure, Step};
use crate::sys;

/// Makes every descriptor above 2 but `kept` close when the command is executed, whatever its number and
/// whoever opened it. Not before: what tells the launcher that the execution failed is one of them.
pub fn close_all_but(kept: &[RawFd]) -> Result<(), Failure> {
    for (first, last) in gaps(kept) {
        sys::close_range_on_exec(first, last).during(Step::Descriptors, "close_range")?;
    }
    for fd in kept {
        sys::keep_on_exec(*fd).during(Step::Descriptors, &format!("fcntl({fd}, F_SETFD)"))?;
    }
    Ok(())
}

/// The ranges between the kept descriptors.
fn gaps(kept: &[RawFd]) -> Vec<(c_uint, c_uint)> {
    let mut kept: Vec<c_uint> = kept.iter().filter_map(|fd| c_uint::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 3;
    let mut gaps = Vec::new();
    for fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = first.max(fd + 1);
    }
    gaps.push((first, c_uint::MAX));
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_between_is_closed() {
        const MAX: c_uint = c_uint::MAX;
        for (kept, want) in [
            (&[][..], &[(3, MAX)][..]),
            (&[3], &[(4, MAX)]),
            (&[5], &[(3, 4), (6, MAX)]),
            (&[7, 5, 5], &[(3, 4), (6, 6), (8, MAX)]),
            (&[3, 4, 1023], &[(5, 1022), (1024, MAX)]),
            (&[0, 1, 2], &[(3, MAX)]),
        ] {
            assert_eq!(gaps(kept), want, "{kept:?}");
        }
    }
}
