//! Rows in the binary format of `copy`, in which Postgres takes many at once.

use sqlx::error::BoxDynError;

use super::column::Column;

fn write_field(column: &Column, row: usize, bytes: &mut Vec<u8>) -> Result<(), BoxDynError> {
    match column {
        Column::Int(values) => {
            bytes.extend_from_slice(&8_i32.to_be_bytes());
            bytes.extend_from_slice(&values.get(row).copied().unwrap_or_default().to_be_bytes());
        }
        Column::Text(values) => {
            let text = values.get(row).map_or("", String::as_str);
            bytes.extend_from_slice(&i32::try_from(text.len())?.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Column::Bytes(values) => {
            let value = values.get(row).map_or(&[][..], |value| value);
            bytes.extend_from_slice(&i32::try_from(value.len())?.to_be_bytes());
            bytes.extend_from_slice(value);
        }
    }
    Ok(())
}

/// How a stream of rows begins in the binary format of `copy`: the signature, no flags, no
/// extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// How it ends.
const COPY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Rows in the binary format of `copy`: each field is its length, and a number with its highest
/// byte first, or a text or bytes as they are.
pub(super) fn copy_rows(columns: &[Column]) -> Result<Vec<u8>, BoxDynError> {
    let fields = i16::try_from(columns.len())?.to_be_bytes();
    let rows = columns.first().map_or(0, Column::len);
    if columns.iter().any(|column| column.len() != rows) {
        return Err("the columns differ in length".into());
    }
    let mut bytes = Vec::with_capacity(COPY_HEADER.len() + rows * (2 + 12 * columns.len()) + COPY_TRAILER.len());
    bytes.extend_from_slice(COPY_HEADER);
    for row in 0..rows {
        bytes.extend_from_slice(&fields);
        for column in columns {
            write_field(column, row, &mut bytes)?;
        }
    }
    bytes.extend_from_slice(&COPY_TRAILER);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_as_the_format_has_them() {
        let bytes = copy_rows(&[Column::Int(vec![1, -2]), Column::Int(vec![3, i64::MAX])]).unwrap();
        let field = |value: i64| [8_i32.to_be_bytes().as_slice(), &value.to_be_bytes()].concat();
        let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
        let expected = [header, vec![0, 2], field(1), field(3), vec![0, 2], field(-2), field(i64::MAX), vec![0xff, 0xff]].concat();
        assert_eq!(bytes, expected);
        assert!(copy_rows(&[Column::Int(vec![1]), Column::Int(vec![])]).is_err());
        let texts = copy_rows(&[Column::Text(vec!["né".to_owned(), String::new()])]).unwrap();
        assert_eq!(texts[19..texts.len() - 2], [0, 1, 0, 0, 0, 3, b'n', 0xc3, 0xa9, 0, 1, 0, 0, 0, 0]);
    }
}
