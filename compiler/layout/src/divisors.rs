//! Divisors of integers: the one `gcd` of the compiler. `ptoc_ir::analysis` hands it on.

/// The greatest common divisor of the amounts of two numbers; 0 if both are 0.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // 2^63, of `i64::MIN` alone, has half of it for a divisor that fits.
    i64::try_from(a).unwrap_or(1 << 62)
}

/// The least common multiple of the amounts of two numbers, 0 if one is 0; `None` if it is too great.
pub fn lcm(a: i64, b: i64) -> Option<i64> {
    (a / gcd(a, b).max(1)).checked_mul(b)?.checked_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_multiples() {
        for a in -20..20i64 {
            for b in -20..20i64 {
                let greatest = if a == 0 && b == 0 { 0 } else { (1..=20).rfind(|d| a % d == 0 && b % d == 0).unwrap() };
                assert_eq!(gcd(a, b), greatest, "{a} {b}");
                let multiple = |m: &i64| m % a == 0 && m % b == 0;
                let least = if a == 0 || b == 0 { Some(0) } else { (1..=400).find(multiple) };
                assert_eq!(lcm(a, b), least, "{a} {b}");
            }
        }
        assert_eq!(gcd(i64::MIN, 0), 1 << 62);
        assert_eq!(gcd(i64::MIN, 96), 32);
        assert_eq!(lcm(i64::MAX, i64::MAX - 1), None);
    }
}
