use std::time::Duration;

use srt_shared::decider::NeedBody;

use super::*;

fn allow(id: u64) -> Verdict {
    Verdict { id, decision: Decision::Allow(Edits::default()) }
}

fn deny(id: u64) -> Verdict {
    Verdict { id, decision: Decision::Deny(Denial::new(403, None).unwrap()) }
}

fn need_body(id: u64) -> Verdict {
    Verdict { id, decision: Decision::NeedBody(NeedBody::new(10).unwrap()) }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[tokio::test]
async fn each_verdict_decides_its_own_question_once() {
    let mut table = Table::default();
    let (a, rx_a) = table.open(soon());
    let (b, rx_b) = table.open(soon());
    assert_eq!((a, b), (1, 2));
    table.decide(deny(b)).unwrap();
    table.decide(allow(a)).unwrap();
    assert!(matches!(rx_a.await, Ok(Answer::Allow(_))));
    assert!(matches!(rx_b.await, Ok(Answer::Deny(_))));
    assert_eq!(table.decide(allow(a)), Err(Breach::UnknownId));
    assert_eq!(table.decide(allow(3)), Err(Breach::UnknownId));
    assert_eq!(table.decide(allow(0)), Err(Breach::UnknownId));
}

#[tokio::test]
async fn while_the_body_is_read_only_a_deny_may_come() {
    let mut table = Table::default();
    for verdict in [allow(1), need_body(1), deny(1)] {
        let mut table = Table::default();
        let (id, rx) = table.open(soon());
        table.decide(need_body(id)).unwrap();
        let Ok(Answer::NeedBody { max: 10, next }) = rx.await else { panic!("asked for the body") };
        match verdict.decision {
            Decision::Allow(_) => assert_eq!(table.decide(verdict), Err(Breach::AllowWhileReading)),
            Decision::NeedBody(_) => assert_eq!(table.decide(verdict), Err(Breach::SecondNeedBody)),
            Decision::Deny(_) => {
                table.decide(verdict).unwrap();
                assert!(matches!(next.await, Ok(Answer::Deny(_))));
            }
        }
    }
    let (id, rx) = table.open(soon());
    table.decide(need_body(id)).unwrap();
    let Ok(Answer::NeedBody { next, .. }) = rx.await else { panic!("asked for the body") };
    table.shown(id, soon());
    assert_eq!(table.decide(need_body(id)), Err(Breach::SecondNeedBody));
    table.decide(allow(id)).unwrap();
    assert!(matches!(next.await, Ok(Answer::Allow(_))));
}

#[tokio::test]
async fn time_runs_per_verdict_and_not_while_the_body_is_read() {
    let mut table = Table::default();
    let now = Instant::now();
    let (slow, rx_slow) = table.open(now + Duration::from_secs(5));
    let (body, rx_body) = table.open(now + Duration::from_secs(5));
    table.decide(need_body(body)).unwrap();
    let Ok(Answer::NeedBody { next, .. }) = rx_body.await else { panic!("asked for the body") };
    assert_eq!(table.expire(now), Some(now + Duration::from_secs(5)));
    assert_eq!(table.expire(now + Duration::from_secs(60)), None);
    assert!(matches!(rx_slow.await, Ok(Answer::TimedOut)));
    // Late verdicts of any kind are dropped.
    table.decide(allow(slow)).unwrap();
    table.decide(need_body(slow)).unwrap();
    table.shown(body, now + Duration::from_secs(65));
    assert_eq!(table.expire(now + Duration::from_secs(64)), Some(now + Duration::from_secs(65)));
    table.expire(now + Duration::from_secs(65));
    assert!(matches!(next.await, Ok(Answer::TimedOut)));
}

#[tokio::test]
async fn abandoned_ids_are_remembered_for_a_while_and_then_forgotten() {
    let mut table = Table::default();
    let (id, rx) = table.open(soon());
    drop(rx);
    table.abandon(id);
    for _ in 0..REMEMBERED {
        let (id, _rx) = table.open(soon());
        table.decide(allow(id)).unwrap();
    }
    table.decide(allow(id)).unwrap();
    table.open(soon());
    assert_eq!(table.decide(allow(id)), Err(Breach::UnknownId));
}

#[tokio::test]
async fn a_lost_link_answers_everybody() {
    let mut table = Table::default();
    let (_, rx) = table.open(soon());
    table.close();
    assert!(matches!(rx.await, Ok(Answer::Gone)));
}

#[tokio::test]
async fn what_was_decided_leaves_no_timer_behind() {
    let mut table = Table::default();
    for _ in 0..100 {
        let (id, _rx) = table.open(soon());
        table.decide(allow(id)).unwrap();
    }
    assert_eq!(table.deadlines.len(), 1);
}
