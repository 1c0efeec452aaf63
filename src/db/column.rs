//! The columns of a table of parameters.

/// The type of a parameter column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 64-bit integer.
    Int,
    /// Text, without NUL.
    Text,
    /// Text that people wrote to each other, as a [`Column::Text`]. It never stands in the text of
    /// a statement, which Postgres logs when the statement fails.
    Content,
    /// Any bytes.
    Bytes,
}

/// One parameter column: a value for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Integers.
    Int(Vec<i64>),
    /// Texts.
    Text(Vec<String>),
    /// Strings of bytes.
    Bytes(Vec<Vec<u8>>),
}

impl Column {
    /// Columns of one row: of each number, one.
    #[must_use]
    pub fn one_row(values: &[i64]) -> Vec<Self> {
        values.iter().map(|value| Self::Int(vec![*value])).collect()
    }

    /// These rows of it.
    pub(super) fn pick(&self, rows: &[usize]) -> Self {
        fn of<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().filter_map(|row| values.get(*row).cloned()).collect()
        }
        match self {
            Self::Int(values) => Self::Int(of(values, rows)),
            Self::Text(values) => Self::Text(of(values, rows)),
            Self::Bytes(values) => Self::Bytes(of(values, rows)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }
}
