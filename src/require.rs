//! Conditions on a report: what `--require` takes.
//!
//! A condition is `KEY OP NUMBER`, such as `mfma.on_ambiguous=0` or `effective_lines>=8`. The
//! key is a dotted path into the report's JSON; a leaf class at its start stands for
//! `leaves.CLASS`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::leaf::Class;

/// A condition on one number of a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    text: String,
    key: String,
    comparison: Comparison,
    bound: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The comparison operators, the longer of two with one start first.
const OPERATORS: &[(&str, Comparison)] = &[
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || {
            format!(
                "condition '{text}' is not of the form KEY OP NUMBER, such as mfma.on_ambiguous=0"
            )
        };
        let at = text.find(['<', '>', '=', '!']).ok_or_else(malformed)?;
        let (key, rest) = text.split_at(at);
        let (bound, comparison) = OPERATORS
            .iter()
            .find_map(|(sign, comparison)| Some((rest.strip_prefix(sign)?, *comparison)))
            .ok_or_else(malformed)?;
        let key = key.trim();
        let bound = bound.trim().parse().map_err(|_| malformed())?;
        if key.is_empty() {
            return Err(malformed());
        }
        Ok(Condition { text: text.into(), key: full_key(key), comparison, bound })
    }
}

fn full_key(key: &str) -> String {
    let first = key.split('.').next().unwrap_or_default();
    match first.parse::<Class>() {
        Ok(_) => format!("leaves.{key}"),
        Err(_) => key.into(),
    }
}

/// What a condition says of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// The number meets the condition.
    Met,
    /// The number, given here, does not meet it.
    Failed(f64),
    /// The report has the key, but its value is not known; no condition is met by that.
    Unknown,
    /// The report has no number of this key.
    NoSuchKey,
}

impl Condition {
    /// Checks the condition on one report.
    pub fn check(&self, report: &Value) -> Verdict {
        let step =
            |value, part| if matches!(value, &Value::Null) { Some(value) } else { value.get(part) };
        let value = self.key.split('.').try_fold(report, step);
        match value {
            Some(Value::Null) => Verdict::Unknown,
            Some(Value::Number(number)) => match number.as_f64() {
                Some(number) if self.holds(number) => Verdict::Met,
                Some(number) => Verdict::Failed(number),
                None => Verdict::Unknown,
            },
            _ => Verdict::NoSuchKey,
        }
    }

    fn holds(&self, number: f64) -> bool {
        match self.comparison {
            Comparison::Equal => number == self.bound,
            Comparison::NotEqual => number != self.bound,
            Comparison::Less => number < self.bound,
            Comparison::LessOrEqual => number <= self.bound,
            Comparison::Greater => number > self.bound,
            Comparison::GreaterOrEqual => number >= self.bound,
        }
    }
}

/// A sentence for each condition that a report does not meet.
pub fn unmet(conditions: &[Condition], report: &Value) -> Vec<String> {
    let sentence = |condition: &Condition| match condition.check(report) {
        Verdict::Met => None,
        Verdict::Failed(number) => Some(format!("not met: {condition}, it is {number}")),
        Verdict::Unknown => Some(format!("not met: {condition}, it is not known")),
        Verdict::NoSuchKey => Some(format!("not met: {condition}, the report has no such number")),
    };
    conditions.iter().filter_map(sentence).collect()
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(condition: &str) -> Verdict {
        let report = serde_json::json!({
            "lines": 12, "line_zero_share": 0.25, "definition_line": null,
            "leaves": {"mfma": {"on_ambiguous": 3}, "wait": null},
        });
        condition.parse::<Condition>().unwrap().check(&report)
    }

    #[test]
    fn conditions_compare() {
        for met in [
            "lines=12",
            "lines == 12",
            "lines>=12",
            "lines<=12",
            "lines!=1",
            "lines>11",
            "lines<13",
        ] {
            assert_eq!(check(met), Verdict::Met, "{met}");
        }
        assert_eq!(check("lines<12"), Verdict::Failed(12.0));
        assert_eq!(check("line_zero_share<=0.01"), Verdict::Failed(0.25));
        assert_eq!(check("mfma.on_ambiguous=0"), Verdict::Failed(3.0));
        assert_eq!(check("leaves.mfma.on_ambiguous=3"), Verdict::Met);
    }

    #[test]
    fn what_is_unknown_meets_nothing() {
        assert_eq!(check("definition_line=0"), Verdict::Unknown);
        assert_eq!(check("wait.on_ambiguous=0"), Verdict::Unknown);
        assert_eq!(check("no_such=0"), Verdict::NoSuchKey);
        assert_eq!(check("leaves=0"), Verdict::NoSuchKey);
    }

    #[test]
    fn what_is_not_met_is_said() {
        let report = serde_json::json!({"lines": 12});
        let conditions = ["lines=12", "lines>12", "none=0"].map(|c| c.parse().unwrap());
        let said = unmet(&conditions, &report);
        assert_eq!(said[0], "not met: lines>12, it is 12");
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for text in ["", "lines", "=3", "lines=", "lines=x", "lines!3"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
