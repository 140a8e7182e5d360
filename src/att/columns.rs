//! The columns of `code.json`, found by the names in its header.

/// The header that rocprofv3 writes, and that a file without one is taken to have.
const DEFAULT: &str = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle";

/// What a column holds for siteline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Column {
    Isa,
    LineNumber,
    Source,
    Codeobj,
    Vaddr,
    Hit,
    Latency,
    Stall,
    Idle,
    PcIssued,
    PcStalled,
}

impl Column {
    const ALL: [Column; 11] = [
        Column::Isa,
        Column::LineNumber,
        Column::Source,
        Column::Codeobj,
        Column::Vaddr,
        Column::Hit,
        Column::Latency,
        Column::Stall,
        Column::Idle,
        Column::PcIssued,
        Column::PcStalled,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Column::Isa => "ISA",
            Column::LineNumber => "LineNumber",
            Column::Source => "Source",
            Column::Codeobj => "Codeobj",
            Column::Vaddr => "Vaddr",
            Column::Hit => "Hit",
            Column::Latency => "Latency",
            Column::Stall => "Stall",
            Column::Idle => "Idle",
            Column::PcIssued => "PC_Issued",
            Column::PcStalled => "PC_Stalled",
        }
    }

    /// Whether only captures with PC sampling have the column.
    fn is_sampling(self) -> bool {
        matches!(self, Column::PcIssued | Column::PcStalled)
    }
}

/// The columns of one file, in its order; `None` for one that siteline does not read.
#[derive(Debug)]
pub(super) struct Columns(Vec<Option<Column>>);

impl Columns {
    /// Finds the columns in a header.
    ///
    /// # Errors
    /// The message: the header lacks a column, or names one twice.
    pub(super) fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, String> {
        let columns: Vec<_> = names.into_iter().map(str::trim).map(column_named).collect();
        for column in Column::ALL {
            match columns.iter().filter(|c| **c == Some(column)).count() {
                0 if !column.is_sampling() => {
                    return Err(format!(
                        "the header names no column '{}': it should be like \"{DEFAULT}\"",
                        column.name()
                    ));
                }
                0 | 1 => {}
                _ => return Err(format!("the header names column '{}' twice", column.name())),
            }
        }
        Ok(Columns(columns))
    }

    /// The columns of a comma-separated header.
    ///
    /// # Errors
    /// As [`Columns::of_names`].
    pub(super) fn of_text(header: &str) -> Result<Self, String> {
        Columns::of_names(header.split(','))
    }

    /// The columns of a file without a header.
    pub(super) fn default() -> Result<Self, String> {
        Columns::of_text(DEFAULT)
    }

    /// How many columns the header names.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What the cell at `index` of a row is, where siteline reads it.
    pub(super) fn at(&self, index: usize) -> Option<Column> {
        self.0.get(index).copied().flatten()
    }

    /// Whether the file has columns of PC sampling.
    pub(super) fn has_samples(&self) -> bool {
        self.0.iter().flatten().any(|column| column.is_sampling())
    }
}

fn column_named(name: &str) -> Option<Column> {
    Column::ALL.into_iter().find(|column| column.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let columns = Columns::of_text(
            "Vaddr,ISA, Mystery,LineNumber,Source,Codeobj,Hit,Latency,Stall,Idle,PC_Issued",
        )
        .unwrap();
        assert_eq!(columns.at(0), Some(Column::Vaddr));
        assert_eq!(columns.at(2), None);
        assert_eq!(columns.at(99), None);
        assert!(columns.has_samples());
        assert!(!Columns::default().unwrap().has_samples());
    }

    #[test]
    fn a_missing_or_double_column_is_named() {
        let error = Columns::of_text("ISA, Source").unwrap_err();
        assert!(error.contains("'LineNumber'"), "{error}");
        let error = Columns::of_text(&format!("{DEFAULT}, Hit")).unwrap_err();
        assert!(error.contains("'Hit' twice"), "{error}");
    }
}
