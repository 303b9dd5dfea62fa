//! A thread that either starts or does not.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use nix::errno::Errno;

/// A thread of the C library alone. One of the standard library makes itself at home before it runs, and aborts where there
/// is no memory left for that: what the first process of a pid namespace does not survive, but hangs in.
#[derive(Debug)]
pub struct Thread<T> {
    thread: libc::pthread_t,
    shared: *mut Shared<T>,
}

#[derive(Debug)]
struct Shared<T> {
    body: fn() -> T,
    result: Option<T>,
}

impl<T: Send> Thread<T> {
    /// Starts one that runs `body` on a stack of this size. It must not panic. If it is never joined it just goes on.
    pub fn start(stack_size: usize, body: fn() -> T) -> nix::Result<Self> {
        extern "C" fn run<T>(shared: *mut c_void) -> *mut c_void {
            // SAFETY: made below, and nobody else's until this thread has been joined.
            let shared = unsafe { &mut *shared.cast::<Shared<T>>() };
            shared.result = Some((shared.body)());
            std::ptr::null_mut()
        }
        let shared = Box::into_raw(Box::new(Shared { body, result: None }));
        let mut attributes = MaybeUninit::uninit();
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the attributes are made, used and destroyed in this order. A size that is refused leaves the default one.
        // `shared` is freed only below, if there is no thread, and by `join`.
        let errno = unsafe {
            libc::pthread_attr_init(attributes.as_mut_ptr());
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_size);
            let errno =
                libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run::<T>, shared.cast());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            errno
        };
        if errno != 0 {
            // SAFETY: it came from a box, and no thread has it.
            drop(unsafe { Box::from_raw(shared) });
            return Err(Errno::from_raw(errno));
        }
        // SAFETY: it was set, since the thread was started.
        Ok(Self { thread: unsafe { thread.assume_init() }, shared })
    }

    /// Waits for its end, and gives what `body` gave.
    pub fn join(self) -> nix::Result<T> {
        // SAFETY: it was started joinable, and is joined once.
        let errno = unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
        if errno != 0 {
            return Err(Errno::from_raw(errno));
        }
        // SAFETY: it came from a box, and the thread that had it has ended.
        let shared = unsafe { Box::from_raw(self.shared) };
        shared.result.ok_or(Errno::ECHILD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_its_body_gives_and_says_that_it_cannot_start() {
        let text = || std::thread::current().name().unwrap_or("none").to_owned();
        assert_eq!(Thread::start(64 << 10, text).unwrap().join(), Ok("none".to_owned()));
        // One of the standard library has a stack for signals, which it ends the process for if there is none to be had.
        let flags = || {
            // SAFETY: all zeroes is a valid `stack_t`; the call writes the present one there and changes nothing.
            unsafe {
                let mut stack: libc::stack_t = std::mem::zeroed();
                libc::sigaltstack(std::ptr::null(), &raw mut stack);
                stack.ss_flags
            }
        };
        assert_eq!(Thread::start(64 << 10, flags).unwrap().join(), Ok(libc::SS_DISABLE));
        assert_eq!(std::thread::spawn(flags).join().unwrap(), 0);
        assert_eq!(Thread::start(usize::MAX / 4, || 1).map(|_| ()), Err(Errno::EAGAIN));
    }
}
