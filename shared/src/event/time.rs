use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

const DAY: u64 = 24 * 60 * 60 * 1000;
/// The last millisecond of the year 9999, the last that RFC 3339 can write.
const MAX: u64 = 253_402_300_799_999;

/// A moment in UTC, to the millisecond, written as RFC 3339: `2026-11-29T12:00:00.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Since 1970, without leap seconds.
    millis: u64,
}

impl Timestamp {
    /// The present moment, by the system's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

/// A clock outside 1970 to 9999 gives the nearest moment inside.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { millis: u64::try_from(since.as_millis()).unwrap_or(MAX).min(MAX) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.millis / DAY);
        let ms = self.millis % DAY;
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
    }
}

/// The text is no moment in the form that [`Timestamp`] is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected a time in UTC with milliseconds, as in 2026-11-29T12:00:00.123Z")]
pub struct TimestampError;

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads exactly the form that is written, and only moments that exist.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
        let fits =
            |(text, form): (u8, &u8)| if *form == b'0' { text.is_ascii_digit() } else { text == *form };
        if text.len() != FORM.len() || !text.bytes().zip(FORM).all(fits) {
            return Err(TimestampError);
        }
        let number = |from: usize, to: usize| text[from..to].parse::<u64>().map_err(|_| TimestampError);
        let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?).ok_or(TimestampError)?;
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let ms = ((hour * 60 + minute) * 60 + second) * 1000 + number(20, 23)?;
        let moment = Self { millis: days * DAY + ms };
        // Whatever is out of range, like a 30th of February or a 61st second, comes out as another moment.
        if moment.to_string() == text { Ok(moment) } else { Err(TimestampError) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Year, month and day of a day counted from 1970-01-01 in the Gregorian calendar.
///
/// Years are counted from March, so that a leap day is the last of its year, and in eras of 400 years.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    const TO_1970: u64 = 719_468; // from 0000-03-01
    let days = days + TO_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The reverse; nonsense where month or day are out of range, nothing before 1970.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    const TO_1970: u64 = 719_468;
    let year = year.checked_sub(u64::from(month <= 2))?;
    let from_march = (month + 9) % 12;
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = ((153 * from_march + 2) / 5 + day).checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(TO_1970)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(millis: u64) -> String {
        Timestamp { millis }.to_string()
    }

    #[test]
    fn writes_known_moments() {
        for (millis, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_796_040_000_123, "2026-11-30T12:00:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(millis), written);
        }
    }

    #[test]
    fn refuses_what_is_no_moment_in_that_form() {
        for bad in [
            "",
            "2026-11-29T12:00:00Z",
            "2026-11-29T12:00:00.123",
            "2026-11-29T12:00:00.123+00:00",
            "2026-11-29t12:00:00.123z",
            "2026-11-29 12:00:00.123Z",
            "2026-02-29T12:00:00.123Z",
            "2026-04-31T12:00:00.123Z",
            "2026-13-01T12:00:00.123Z",
            "2026-00-01T12:00:00.123Z",
            "2026-01-00T12:00:00.123Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T23:60:00.000Z",
            "2026-01-01T23:59:60.000Z",
            "1969-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00.000Z",
            "2026-11-29T12:00:00.12\u{663}",
        ] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }

    #[test]
    fn a_clock_outside_the_range_gives_its_edge() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Timestamp::from(before).to_string(), text(0));
        let after = SystemTime::UNIX_EPOCH + Duration::from_secs(300_000_000_000);
        assert_eq!(Timestamp::from(after).to_string(), text(MAX));
    }

    proptest! {
        #[test]
        fn survives_writing_and_reading(millis in 0..=MAX) {
            prop_assert_eq!(text(millis).parse(), Ok(Timestamp { millis }));
        }
    }
}
