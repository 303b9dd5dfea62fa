//! The system call filter: what each [`SeccompRule`] means in numbers, and the program the kernel runs.
//!
//! Numbers of both supported machines are data, so that a test on one of them can judge the program of the
//! other. Only the low 32 bits of an argument are compared: the kernel takes them all as `int` or
//! `unsigned int`, and a filter that looked at the high half could be passed by setting a bit there.

use crate::plan::{SeccompProfile, SeccompRule};

#[cfg(test)]
mod tests;

/// A machine whose system call numbers we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64; x32 calls share its audit number and differ in one bit of the call number.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Machine {
    /// The machine this program was built for; `None` where we know no numbers, and nothing can run.
    pub const HOST: Option<Self> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
        Some(Self::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Self::Aarch64)
    } else {
        None
    };

    /// `AUDIT_ARCH_*`.
    const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

/// One instruction, in the kernel's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip where the test holds.
    pub jt: u8,
    /// Instructions to skip where it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// The program for a profile: a search tree over the numbers of calls. The most frequent calls match no rule at all; the
/// kernel (5.11 on) finds that out when the filter is installed, by a walk through the program for every call there is,
/// and does not run it for them. So every step that a call takes costs a start of each sandbox.
pub fn compile(profile: &SeccompProfile, machine: Machine) -> Vec<Instruction> {
    let refuse_foreign = profile.rules.contains(&SeccompRule::ForeignAbis);
    let foreign = if refuse_foreign { RET_KILL_PROCESS } else { RET_ALLOW };
    let mut program = vec![load(DATA_ARCH), jump(JEQ, machine.audit(), 1, 0), answer(foreign), load(DATA_NR)];
    if refuse_foreign && machine == Machine::X86_64 {
        // All bits set is no x32 call: a tracer writes that number to skip a call.
        program.extend([jump(JEQ, u32::MAX, 2, 0), jump(JSET, X32_BIT, 0, 1), answer(RET_KILL_PROCESS)]);
    }
    let mut refusals: Vec<&Refusal> =
        REFUSALS.iter().filter(|refusal| profile.rules.contains(&refusal.rule)).collect();
    refusals.sort_by_key(|refusal| refusal.call.number(machine));
    let leaves: Vec<Leaf> =
        refusals.chunk_by(|a, b| b.continues(a, machine)).map(|group| Leaf::new(group, machine)).collect();
    program.extend(tree(&leaves));
    program
}

/// One answer to neighbouring calls, or what has to be tested of a single one.
struct Leaf {
    first: u32,
    last: u32,
    code: Vec<Instruction>,
}

impl Leaf {
    fn new(group: &[&Refusal], machine: Machine) -> Self {
        let [first, last] = [0, group.len() - 1].map(|at| group[at].call.number(machine));
        // Of a range they are all alike.
        let tested = if first == last { group } else { &group[..1] };
        Self { first, last, code: tested.iter().flat_map(|refusal| refusal.compile()).collect() }
    }
}

/// Searches among `leaves`, which are in order. Every path ends with an answer.
fn tree(leaves: &[Leaf]) -> Vec<Instruction> {
    match leaves {
        [] => vec![answer(RET_ALLOW)],
        [leaf] => {
            let past = distance(leaf.code.len());
            let mut code = if leaf.first == leaf.last {
                vec![jump(JEQ, leaf.first, 0, past)]
            } else {
                vec![jump(JGE, leaf.first, 0, past + 1), jump(JGT, leaf.last, past, 0)]
            };
            code.extend(&leaf.code);
            code.push(answer(RET_ALLOW));
            code
        }
        _ => {
            let (low, high) = leaves.split_at(leaves.len() / 2);
            let (first, low, high) = (high[0].first, tree(low), tree(high));
            [vec![jump(JGE, first, distance(low.len()), 0)], low, high].concat()
        }
    }
}

/// A system call by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    x86_64: u32,
    aarch64: u32,
}

impl Call {
    const fn new(x86_64: u32, aarch64: u32) -> Self {
        Self { x86_64, aarch64 }
    }

    /// Calls from 424 on have one number on every machine.
    const fn same(number: u32) -> Self {
        Self::new(number, number)
    }

    const fn number(self, machine: Machine) -> u32 {
        match machine {
            Machine::X86_64 => self.x86_64,
            Machine::Aarch64 => self.aarch64,
        }
    }
}

/// A call that is refused when every test holds.
struct Refusal {
    rule: SeccompRule,
    call: Call,
    when: &'static [Test],
    errno: i32,
}

impl Refusal {
    const fn always(rule: SeccompRule, call: Call) -> Self {
        Self::when(rule, call, &[])
    }

    const fn when(rule: SeccompRule, call: Call, when: &'static [Test]) -> Self {
        Self { rule, call, when, errno: libc::EPERM }
    }

    /// Whether it belongs to the same leaf as the one before it in the order of numbers.
    fn continues(&self, before: &Self, machine: Machine) -> bool {
        let (number, last) = (self.call.number(machine), before.call.number(machine));
        let alike = self.when.is_empty() && before.when.is_empty() && self.errno == before.errno;
        number == last || alike && number == last + 1
    }

    /// Falls through to the instruction after it when a test does not hold.
    fn compile(&self) -> Vec<Instruction> {
        let mut left: usize = self.when.iter().map(|test| test.len()).sum();
        let mut code = Vec::with_capacity(left + 1);
        for test in self.when {
            left -= test.len();
            // Past the remaining tests and the answer.
            test.compile(distance(left + 1), &mut code);
        }
        code.push(answer(RET_ERRNO | self.errno as u32));
        code
    }
}

/// A test of the low half of one argument.
#[derive(Debug, Clone, Copy)]
enum Test {
    Is(Arg, u32),
    IsNot(Arg, u32),
    AnyBit(Arg, u32),
}

#[derive(Debug, Clone, Copy)]
struct Arg {
    index: u32,
    mask: u32,
}

impl Test {
    const fn arg(self) -> Arg {
        match self {
            Self::Is(arg, _) | Self::IsNot(arg, _) | Self::AnyBit(arg, _) => arg,
        }
    }

    const fn len(self) -> usize {
        if self.arg().mask == u32::MAX { 2 } else { 3 }
    }

    fn compile(self, fail: u8, code: &mut Vec<Instruction>) {
        let arg = self.arg();
        // Both machines are little-endian: the low half of a 64-bit argument comes first.
        code.push(load(DATA_ARGS + 8 * arg.index));
        if arg.mask != u32::MAX {
            code.push(Instruction { code: AND, jt: 0, jf: 0, k: arg.mask });
        }
        code.push(match self {
            Self::Is(_, value) => jump(JEQ, value, 0, fail),
            Self::IsNot(_, value) => jump(JEQ, value, fail, 0),
            Self::AnyBit(_, bits) => jump(JSET, bits, 0, fail),
        });
    }
}

const fn arg(index: u32) -> Arg {
    Arg { index, mask: u32::MAX }
}

const FAMILY: Arg = arg(0);
/// Without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
const KIND: Arg = Arg { index: 1, mask: 0xf };
const PROTOCOL: Arg = arg(2);
/// Of `clone` and `unshare`.
const FLAGS: Arg = arg(0);
/// Of `ioctl`.
const REQUEST: Arg = arg(1);

const UNIX: u32 = libc::AF_UNIX as u32;
const INET: u32 = libc::AF_INET as u32;
const INET6: u32 = libc::AF_INET6 as u32;
const NETLINK: u32 = libc::AF_NETLINK as u32;
const PACKET: u32 = libc::AF_PACKET as u32;
const STREAM: u32 = libc::SOCK_STREAM as u32;
const SEQPACKET: u32 = libc::SOCK_SEQPACKET as u32;
const RAW: u32 = libc::SOCK_RAW as u32;
/// Obsolete `SOCK_PACKET`: turns an `AF_INET` socket into an `AF_PACKET` one.
const OLD_PACKET: u32 = 10;

const CLONE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
/// `clone` has the exit signal in the bits where `unshare` has `CLONE_NEWTIME`.
const UNSHARE_FLAGS: u32 = CLONE_FLAGS | libc::CLONE_NEWTIME as u32;

const SOCKET: Call = Call::new(41, 198);
const SOCKETPAIR: Call = Call::new(53, 199);
const IOCTL: Call = Call::new(16, 29);

/// What the rules refuse. [`SeccompRule::ForeignAbis`] is no list of calls; see [`compile`].
const REFUSALS: &[Refusal] = {
    use SeccompRule::*;
    use Test::{AnyBit, Is, IsNot};
    &[
        Refusal::when(UnixSockets, SOCKET, &[Is(FAMILY, UNIX)]),
        // Not only SOCK_DGRAM: the kernel makes a datagram socket of SOCK_RAW too.
        Refusal::when(
            DatagramPairs,
            SOCKETPAIR,
            &[Is(FAMILY, UNIX), IsNot(KIND, STREAM), IsNot(KIND, SEQPACKET)],
        ),
        Refusal::when(
            OtherFamilies,
            SOCKET,
            &[
                IsNot(FAMILY, UNIX),
                IsNot(FAMILY, INET),
                IsNot(FAMILY, INET6),
                IsNot(FAMILY, NETLINK),
                IsNot(FAMILY, PACKET),
            ],
        ),
        Refusal::when(OtherFamilies, SOCKETPAIR, &[IsNot(FAMILY, UNIX)]),
        Refusal::when(Netlink, SOCKET, &[Is(FAMILY, NETLINK), IsNot(PROTOCOL, libc::NETLINK_ROUTE as u32)]),
        Refusal::when(RawSockets, SOCKET, &[Is(FAMILY, PACKET)]),
        Refusal::when(RawSockets, SOCKET, &[Is(FAMILY, INET), Is(KIND, RAW)]),
        Refusal::when(RawSockets, SOCKET, &[Is(FAMILY, INET), Is(KIND, OLD_PACKET)]),
        Refusal::when(RawSockets, SOCKET, &[Is(FAMILY, INET6), Is(KIND, RAW)]),
        Refusal::always(IoUring, Call::same(425)), // io_uring_setup
        Refusal::always(IoUring, Call::same(426)), // io_uring_enter
        Refusal::always(IoUring, Call::same(427)), // io_uring_register
        Refusal::when(Namespaces, Call::new(56, 220), &[AnyBit(FLAGS, CLONE_FLAGS)]), // clone
        Refusal::when(Namespaces, Call::new(272, 97), &[AnyBit(FLAGS, UNSHARE_FLAGS)]), // unshare
        Refusal::always(Setns, Call::new(308, 268)),
        Refusal::always(Mounts, Call::new(165, 40)), // mount
        Refusal::always(Mounts, Call::new(166, 39)), // umount2
        Refusal::always(Mounts, Call::new(155, 41)), // pivot_root
        Refusal::always(Mounts, Call::same(428)),    // open_tree
        Refusal::always(Mounts, Call::same(429)),    // move_mount
        Refusal::always(Mounts, Call::same(430)),    // fsopen
        Refusal::always(Mounts, Call::same(431)),    // fsconfig
        Refusal::always(Mounts, Call::same(432)),    // fsmount
        Refusal::always(Mounts, Call::same(433)),    // fspick
        Refusal::always(Mounts, Call::same(442)),    // mount_setattr
        Refusal::always(Mounts, Call::same(467)),    // open_tree_attr
        Refusal { errno: libc::ENOSYS, ..Refusal::always(Clone3, Call::same(435)) },
        Refusal::always(Bpf, Call::new(321, 280)),
        Refusal::always(PerfEvents, Call::new(298, 241)),
        Refusal::always(UserFaultFd, Call::new(323, 282)),
        Refusal::always(Keyrings, Call::new(248, 217)), // add_key
        Refusal::always(Keyrings, Call::new(249, 218)), // request_key
        Refusal::always(Keyrings, Call::new(250, 219)), // keyctl
        Refusal::always(Kexec, Call::new(246, 104)),    // kexec_load
        Refusal::always(Kexec, Call::new(320, 294)),    // kexec_file_load
        Refusal::always(Modules, Call::new(175, 105)),  // init_module
        Refusal::always(Modules, Call::new(313, 273)),  // finit_module
        Refusal::always(Modules, Call::new(176, 106)),  // delete_module
        Refusal::always(FileHandles, Call::new(304, 265)),
        Refusal::always(KernelLog, Call::new(103, 116)),
        Refusal::when(TerminalInjection, IOCTL, &[Is(REQUEST, 0x5412)]), // TIOCSTI
        Refusal::when(TerminalInjection, IOCTL, &[Is(REQUEST, 0x541c)]), // TIOCLINUX
    ]
};

/// The bit that marks an x32 call.
const X32_BIT: u32 = 0x4000_0000;

// Offsets in `struct seccomp_data`.
const DATA_NR: u32 = 0;
const DATA_ARCH: u32 = 4;
const DATA_ARGS: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const JEQ: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JGE: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JGT: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const JSET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RET: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const RET_ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const RET_ERRNO: u32 = libc::SECCOMP_RET_ERRNO;
const RET_KILL_PROCESS: u32 = libc::SECCOMP_RET_KILL_PROCESS;

const fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jt: 0, jf: 0, k: offset }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

const fn answer(k: u32) -> Instruction {
    Instruction { code: RET, jt: 0, jf: 0, k }
}

fn distance(instructions: usize) -> u8 {
    u8::try_from(instructions)
        .expect("invariant: all rules are less than 512 instructions, a half of them less than 256")
}
