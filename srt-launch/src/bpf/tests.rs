use super::*;
use proptest::prelude::*;

const EPERM: u32 = RET_ERRNO | libc::EPERM as u32;
const ENOSYS: u32 = RET_ERRNO | libc::ENOSYS as u32;
const KILL: u32 = RET_KILL_PROCESS;
const ALLOW: u32 = RET_ALLOW;
const I386: u32 = 0x4000_0003;
const ARM: u32 = 0x4000_0028;
/// A high half that must not matter.
const HIGH: u64 = 0x1234_5678_0000_0000;

/// What the kernel would answer.
fn evaluate(program: &[Instruction], arch: u32, nr: u32, args: &[u64]) -> u32 {
    walk(program, arch, nr, args).0
}

/// And after how many instructions.
fn walk(program: &[Instruction], arch: u32, nr: u32, args: &[u64]) -> (u32, usize) {
    let mut data = [0u8; 64];
    data[..4].copy_from_slice(&nr.to_le_bytes());
    data[4..8].copy_from_slice(&arch.to_le_bytes());
    for (i, value) in args.iter().enumerate() {
        data[16 + 8 * i..][..8].copy_from_slice(&value.to_le_bytes());
    }
    let (mut at, mut a, mut steps) = (0, 0u32, 0);
    loop {
        let instruction = program[at];
        at += 1;
        steps += 1;
        let skip = |holds: bool| usize::from(if holds { instruction.jt } else { instruction.jf });
        match instruction.code {
            LOAD => a = u32::from_le_bytes(data[instruction.k as usize..][..4].try_into().unwrap()),
            AND => a &= instruction.k,
            JEQ => at += skip(a == instruction.k),
            JGE => at += skip(a >= instruction.k),
            JGT => at += skip(a > instruction.k),
            JSET => at += skip(a & instruction.k != 0),
            RET => return (instruction.k, steps),
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn on(machine: Machine, profile: &SeccompProfile, call: Call, args: &[u64]) -> u32 {
    evaluate(&compile(profile, machine), machine.audit(), call.number(machine), args)
}

/// On both machines, which must agree.
fn under(profile: &SeccompProfile, call: Call, args: &[u64]) -> u32 {
    let answers = [Machine::X86_64, Machine::Aarch64].map(|machine| on(machine, profile, call, args));
    assert_eq!(answers[0], answers[1], "{call:?} {args:x?}");
    answers[0]
}

fn default() -> SeccompProfile {
    SeccompProfile::new(false, false)
}

#[test]
fn sockets() {
    const CLOEXEC_NONBLOCK: u64 = 0o2004000;
    let table: &[(u64, u64, u64, u32)] = &[
        // family, type, protocol
        (1, 1, 0, EPERM),
        (1, 2, 0, EPERM),
        (1, 5 | CLOEXEC_NONBLOCK, 0, EPERM),
        (HIGH | 1, 1, 0, EPERM),
        (2, 1, 0, ALLOW),
        (2, 2 | CLOEXEC_NONBLOCK, 17, ALLOW),
        (10, 1, 6, ALLOW),
        (2, 2, 1, ALLOW), // ping
        (2, 3, 1, EPERM), // raw
        (2, 3 | CLOEXEC_NONBLOCK, 1, EPERM),
        (HIGH | 2, HIGH | 3, 1, EPERM),
        (10, 3, 58, EPERM),
        (2, 10, 3, EPERM), // SOCK_PACKET
        (17, 3, 3, EPERM), // AF_PACKET
        (17, 2, 0, EPERM),
        (16, 3, 0, ALLOW), // netlink, routes
        (16, 2 | CLOEXEC_NONBLOCK, HIGH, ALLOW),
        (16, 3, 9, EPERM),  // netlink, audit
        (16, 3, 12, EPERM), // netlink, netfilter
        (16, 3, 15, EPERM), // netlink, uevents
        (40, 1, 0, EPERM),  // vsock
        (38, 5, 0, EPERM),  // kernel crypto
        (44, 3, 0, EPERM),  // XDP
        (0, 1, 0, EPERM),
        (4096, 1, 0, EPERM),
    ];
    for (family, kind, protocol, want) in table {
        assert_eq!(
            under(&default(), SOCKET, &[*family, *kind, *protocol]),
            *want,
            "{family} {kind} {protocol}"
        );
    }
}

#[test]
fn socket_pairs() {
    let table: &[(u64, u64, u32)] = &[
        (1, 1, ALLOW),
        (1, 5 | 0o2000000, ALLOW),
        (HIGH | 1, HIGH | 1, ALLOW),
        (1, 2, EPERM),
        (1, 2 | 0o4000, EPERM),
        (1, 3, EPERM), // a datagram socket under another name
        (1, 4, EPERM),
        (30, 5, EPERM), // TIPC
    ];
    for (family, kind, want) in table {
        assert_eq!(
            under(&default(), SOCKETPAIR, &[*family, *kind, 0, 0x7fff_0000]),
            *want,
            "{family} {kind}"
        );
    }
}

#[test]
fn settings_open_sockets_and_nothing_else() {
    let open = SeccompProfile::new(true, false);
    assert_eq!(under(&open, SOCKET, &[1, 2, 0]), ALLOW);
    assert_eq!(under(&open, SOCKETPAIR, &[1, 2, 0]), ALLOW);
    assert_eq!(under(&open, SOCKET, &[40, 1, 0]), EPERM);
    assert_eq!(under(&open, SOCKET, &[17, 3, 0]), EPERM);
    assert_eq!(under(&open, Call::same(425), &[]), EPERM);
}

#[test]
fn namespaces() {
    let (clone, unshare) = (Call::new(56, 220), Call::new(272, 97));
    let thread = 0x3d_0f00u64; // what pthread_create asks for
    assert_eq!(under(&default(), clone, &[thread]), ALLOW);
    assert_eq!(under(&default(), clone, &[libc::SIGCHLD as u64]), ALLOW);
    assert_eq!(under(&default(), clone, &[0x80]), ALLOW); // no CLONE_NEWTIME here, but a signal
    assert_eq!(under(&default(), unshare, &[0x400]), ALLOW); // CLONE_FILES
    for flag in [0x2_0000u64, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        assert_eq!(under(&default(), clone, &[thread | flag]), EPERM, "clone {flag:#x}");
        assert_eq!(under(&default(), clone, &[HIGH | flag | 17]), EPERM, "clone {flag:#x}");
        assert_eq!(under(&default(), unshare, &[HIGH | flag]), EPERM, "unshare {flag:#x}");
        assert_eq!(under(&SeccompProfile::new(false, true), clone, &[flag]), ALLOW);
    }
    assert_eq!(under(&default(), unshare, &[0x80]), EPERM); // CLONE_NEWTIME
    assert_eq!(under(&default(), Call::same(435), &[0x1000, 88]), ENOSYS);
    assert_eq!(under(&default(), Call::new(308, 268), &[3, 0]), EPERM);
}

#[test]
fn ioctls() {
    for (request, want) in
        [(0x5412u64, EPERM), (0x541c, EPERM), (HIGH | 0x5412, EPERM), (0x5413, ALLOW), (0x5401, ALLOW)]
    {
        assert_eq!(under(&default(), IOCTL, &[0, request, 0]), want, "{request:#x}");
    }
}

/// Names are for the message; the numbers are what the kernel's tables say.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_refused_call_has_the_number_libc_gives_it() {
    use libc::*;
    let refused = [
        SYS_socket,
        SYS_socketpair,
        SYS_ioctl,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_clone,
        SYS_unshare,
        SYS_setns,
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_open_tree,
        SYS_move_mount,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fspick,
        SYS_mount_setattr,
        467,
        SYS_clone3,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_add_key,
        SYS_request_key,
        SYS_keyctl,
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_open_by_handle_at,
        SYS_syslog,
    ];
    let mut want: Vec<u32> = refused.iter().map(|nr| *nr as u32).collect();
    let mut have: Vec<u32> = REFUSALS.iter().map(|refusal| refusal.call.x86_64).collect();
    want.sort_unstable();
    have.sort_unstable();
    have.dedup();
    assert_eq!(have, want);
}

#[test]
fn other_abis_end_the_process() {
    let program = compile(&default(), Machine::X86_64);
    for (arch, nr) in [(I386, 359), (I386, 4), (ARM, 281), (Machine::Aarch64.audit(), 198)] {
        assert_eq!(evaluate(&program, arch, nr, &[1, 1, 0]), KILL, "{arch:#x} {nr}");
    }
    let amd64 = Machine::X86_64.audit();
    assert_eq!(evaluate(&program, amd64, X32_BIT | 41, &[1, 1, 0]), KILL);
    assert_eq!(evaluate(&program, amd64, X32_BIT, &[]), KILL);
    assert_eq!(evaluate(&program, amd64, 0x8000_0000, &[]), ALLOW); // no such call
    assert_eq!(evaluate(&program, amd64, u32::MAX, &[]), ALLOW); // skipped by a tracer
    assert_eq!(evaluate(&compile(&default(), Machine::Aarch64), ARM, 281, &[1, 1, 0]), KILL);
}

/// A control run takes one rule out: what only that rule refuses must pass then, and nothing else.
#[test]
fn each_rule_can_be_taken_out_alone() {
    for rule in SeccompRule::ALL {
        let mut without = default();
        without.rules.remove(&rule);
        for refusal in REFUSALS {
            let want = if refusal.rule == rule { ALLOW } else { RET_ERRNO | refusal.errno as u32 };
            let have = under(&without, refusal.call, &example(refusal));
            assert_eq!(have, want, "{:?} without {rule:?}", refusal.rule);
        }
    }
    let mut open = default();
    open.rules.remove(&SeccompRule::ForeignAbis);
    let program = compile(&open, Machine::X86_64);
    assert_eq!(evaluate(&program, I386, 359, &[1, 1, 0]), ALLOW);
    assert_eq!(evaluate(&program, Machine::X86_64.audit(), X32_BIT | 41, &[1, 1, 0]), ALLOW);
}

/// Arguments for which every test of a refusal holds.
fn example(refusal: &Refusal) -> [u64; 6] {
    let mut args = [0; 6];
    for test in refusal.when {
        let at = &mut args[test.arg().index as usize];
        match test {
            Test::Is(_, value) => *at = u64::from(*value),
            Test::IsNot(..) if *at == 0 => *at = 14, // no family, type or protocol of any rule
            Test::IsNot(..) => {}
            Test::AnyBit(_, bits) => *at = u64::from(*bits),
        }
    }
    args
}

proptest! {
    /// The program against the meaning of its rules, read the plain way.
    #[test]
    fn program_means_its_rules(nr in 0u32..480, args in prop::array::uniform6(prop_oneof![0u64..48, any::<u64>()]), aarch64: bool) {
        let machine = if aarch64 { Machine::Aarch64 } else { Machine::X86_64 };
        let low = |arg: Arg| args[arg.index as usize] as u32 & arg.mask;
        let want = REFUSALS
            .iter()
            .find(|refusal| {
                refusal.call.number(machine) == nr
                    && refusal.when.iter().all(|test| match *test {
                        Test::Is(arg, value) => low(arg) == value,
                        Test::IsNot(arg, value) => low(arg) != value,
                        Test::AnyBit(arg, bits) => low(arg) & bits != 0,
                    })
            })
            .map_or(ALLOW, |refusal| RET_ERRNO | refusal.errno as u32);
        prop_assert_eq!(evaluate(&compile(&default(), machine), machine.audit(), nr, &args), want);
    }
}

/// Whatever the profile, and with whatever else it lacks, a call is refused if the list says so and else is not.
#[test]
fn the_tree_finds_every_call_and_no_other() {
    let lacking = |rule: SeccompRule| {
        let rules = SeccompRule::ALL.into_iter().filter(|one| *one != rule).collect();
        SeccompProfile { rules }
    };
    let profiles = SeccompRule::ALL.map(lacking).into_iter().chain([
        default(),
        SeccompProfile { rules: Default::default() },
        SeccompProfile { rules: [SeccompRule::Clone3].into() },
    ]);
    for profile in profiles {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let program = compile(&profile, machine);
            for nr in 0..1000 {
                let of_this = |refusal: &&Refusal| {
                    refusal.call.number(machine) == nr && profile.rules.contains(&refusal.rule)
                };
                // With all arguments 0 the answer may lie in tests of them, which are tested above.
                if REFUSALS.iter().filter(of_this).any(|refusal| !refusal.when.is_empty()) {
                    continue;
                }
                let refused = REFUSALS.iter().find(of_this);
                let want = refused.map_or(ALLOW, |refusal| RET_ERRNO | refusal.errno as u32);
                let (got, steps) = walk(&program, machine.audit(), nr, &[0; 6]);
                assert_eq!(got, want, "{nr} on {machine:?} under {profile:?}");
                assert!(steps <= 16, "{nr} on {machine:?}: {steps} steps");
            }
        }
    }
}
