//! Filling gaps in an order from the nearest neighbour.

/// Gives the places of an order that have no value that of the nearest one, of two the one
/// behind. `order` holds positions in `values`.
pub fn fill<T: Copy>(order: &[usize], values: &mut [Option<T>]) {
    let before = nearest(order.iter().copied(), values);
    let mut behind = nearest(order.iter().rev().copied(), values);
    behind.reverse();
    for (&at, (before, behind)) in order.iter().zip(before.into_iter().zip(behind)) {
        if values[at].is_none() {
            values[at] = match (before, behind) {
                (Some((near, value)), Some((far, _))) if near < far => Some(value),
                (_, Some((_, value))) | (Some((_, value)), None) => Some(value),
                (None, None) => None,
            };
        }
    }
}

/// For each place in an order: how far before it the last one with a value is, and that value.
fn nearest<T: Copy>(
    order: impl Iterator<Item = usize>,
    values: &[Option<T>],
) -> Vec<Option<(usize, T)>> {
    let mut last: Option<(usize, T)> = None;
    order
        .map(|at| {
            last = match values[at] {
                Some(value) => Some((0, value)),
                None => last.map(|(distance, value)| (distance + 1, value)),
            };
            last
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_nearest_value_fills_a_gap_and_of_two_the_one_behind() {
        let mut values = [None, Some('a'), None, None, None, Some('b'), None];
        super::fill(&[0, 1, 2, 3, 4, 5, 6], &mut values);
        assert_eq!(values.map(|value| value.unwrap_or(' ')), ['a', 'a', 'a', 'b', 'b', 'b', 'b']);
        let mut none: [Option<u8>; 2] = [None; 2];
        super::fill(&[0, 1], &mut none);
        assert_eq!(none, [None, None]);
    }
}
