//! Where lines come from: a file or standard input, plain or compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// The longest line that is looked at; far more than any good one has.
pub(crate) const MAX_LINE_BYTES: usize = 4096;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The lines of a source, one after the other, in bounded memory.
pub(crate) struct Lines {
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A line as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Its bytes, without the line break.
    Line(&'a [u8]),
    /// It is longer than [`MAX_LINE_BYTES`].
    TooLong,
}

/// Counts what is read, compressed as it is.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(u64::try_from(read).unwrap_or_default(), Ordering::Relaxed);
        Ok(read)
    }
}

/// Opens a file, or with `-` standard input. Returns its lines, and how long it is if that is known.
///
/// # Errors
/// When it cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &Path, bytes: Arc<AtomicU64>) -> io::Result<(Lines, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Lines::new(Counted { inner: io::stdin(), bytes })?, None));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A pipe with a name has no length either.
    let length = about.is_file().then_some(about.len());
    Ok((Lines::new(Counted { inner: file, bytes })?, length))
}

impl Lines {
    /// Lines of what is plain, gzip or zstd, which the first bytes tell.
    ///
    /// # Errors
    /// When these cannot be read.
    pub(crate) fn new(mut raw: impl Read + Send + 'static) -> io::Result<Self> {
        let mut first = Vec::new();
        // Looped over by `read_to_end`, as a pipe may give its first bytes one by one.
        raw.by_ref().take(4).read_to_end(&mut first)?;
        let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
        let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(raw));
        let reader: Box<dyn BufRead + Send> = if gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
        } else if zstd {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::stream::read::Decoder::with_buffer(whole)?))
        } else {
            Box::new(whole)
        };
        Ok(Self { reader, line: Vec::new(), number: 0 })
    }

    /// The next line and its number, from 1 on; None at the end.
    ///
    /// # Errors
    /// When it cannot be read, or was compressed badly.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Found<'_>)>> {
        // Room for the line break, and for its carriage return.
        const ROOM: u64 = (MAX_LINE_BYTES + 2) as u64;
        self.line.clear();
        if self.reader.by_ref().take(ROOM).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() != Some(&b'\n') && self.line.len() > MAX_LINE_BYTES {
            self.skip_line()?;
            return Ok(Some((self.number, Found::TooLong)));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some((self.number, Found::Line(line.strip_suffix(b"\r").unwrap_or(line)))))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            self.reader.consume(used);
            if done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn all(bytes: Vec<u8>) -> io::Result<Vec<(u64, String)>> {
        let mut lines = Lines::new(Cursor::new(bytes))?;
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next()? {
            found.push((
                number,
                match line {
                    Found::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                    Found::TooLong => "too long".to_owned(),
                },
            ));
        }
        Ok(found)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_first_bytes_tell_how_it_is_compressed() {
        let plain = b"a,b\r\n1,2\n\n3,4".to_vec();
        let expected: Vec<_> = [(1, "a,b"), (2, "1,2"), (3, ""), (4, "3,4")].map(|(n, line)| (n, line.to_owned())).into();
        assert_eq!(all(plain.clone()).unwrap(), expected);
        assert_eq!(all(gzip(&plain)).unwrap(), expected);
        assert_eq!(all([gzip(b"a,b\r\n1,2\n\n"), gzip(b"3,4")].concat()).unwrap(), expected, "two files, one after the other");
        assert_eq!(all(zstd::stream::encode_all(plain.as_slice(), 3).unwrap()).unwrap(), expected);
        assert_eq!(all(Vec::new()).unwrap(), []);
        assert_eq!(all(b"a".to_vec()).unwrap(), [(1, "a".to_owned())]);
    }

    #[test]
    fn what_was_cut_off_is_an_error() {
        let whole = gzip("1,2\n".repeat(10_000).as_bytes());
        assert!(all(whole[..whole.len() / 2].to_vec()).is_err());
    }

    #[test]
    fn a_long_line_is_passed_over() {
        let longest = "1".repeat(MAX_LINE_BYTES);
        let text = format!("{longest}\r\n{longest}1\nx\n{}\ny", "2".repeat(3 * BUFFER_BYTES));
        let found: Vec<_> =
            all(text.into_bytes()).unwrap().into_iter().map(|(n, line)| (n, line.len().min(MAX_LINE_BYTES), line)).collect();
        let brief: Vec<_> = found.iter().map(|(n, length, line)| (*n, *length, if *length > 8 { "" } else { line.as_str() })).collect();
        assert_eq!(brief, [(1, MAX_LINE_BYTES, ""), (2, MAX_LINE_BYTES, ""), (3, 1, "x"), (4, 8, "too long"), (5, 1, "y")]);
    }
}
