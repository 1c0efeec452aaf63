//! Medians over rounds, and numbers as text.

/// The middle one; of an even count the mean of the two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        let lower = middle.checked_sub(1).and_then(|at| sorted.get(at)).copied().unwrap_or(f64::NAN);
        return f64::midpoint(lower, upper);
    }
    upper
}

/// The lowest and the highest.
pub(crate) fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// Digits in groups of three, as people read them: `1,234,567`.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::with_capacity(digits.len() + 4);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count as a float, for rates; exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "a rate of more than 2^53 is not to be feared")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(range(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }

    #[test]
    fn digits_stand_in_threes() {
        for (value, text) in [(0.0, "0"), (999.4, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567"), (-1000.0, "-1,000")] {
            assert_eq!(grouped(value), text);
        }
    }
}
