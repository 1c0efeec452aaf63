//! Where records come from: a file or standard input, plain or compressed, as CSV.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::ByteRecord;
use flate2::bufread::MultiGzDecoder;

/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// The longest record: a content of 10,000 characters has at most 40,000 bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 64 * 1024;

/// Room for the line break after the longest record, and one byte that shows a longer one.
const MAX_HELD_BYTES: usize = MAX_RECORD_BYTES + 3;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The records of a source, one after the other, in bounded memory.
pub(crate) struct Records {
    reader: csv::Reader<Lines>,
    record: ByteRecord,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("line", &self.reader.get_ref().line).finish_non_exhaustive()
    }
}

/// A record as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Its fields.
    Record(&'a ByteRecord),
    /// It cannot be read as CSV, and reading goes on at the line after its first one.
    Broken(Broken),
}

/// Why a record cannot be read as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is longer than [`MAX_RECORD_BYTES`].
    TooLong,
    /// The source ends inside quotation marks.
    OpenQuote,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong => write!(f, "has more than {MAX_RECORD_BYTES} bytes; a quotation mark may be missing"),
            Self::OpenQuote => f.write_str("has a quotation mark that is never closed"),
        }
    }
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

/// Opens a file, or with `-` standard input. Returns its records, and how long it is if that is
/// known.
///
/// # Errors
/// When it cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &Path, bytes: Arc<AtomicU64>) -> io::Result<(Records, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Records::new(Counted { inner: io::stdin(), bytes })?, None));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A pipe with a name has no length either.
    let length = about.is_file().then_some(about.len());
    Ok((Records::new(Counted { inner: file, bytes })?, length))
}

/// What the source holds, decompressed: its first bytes show whether it is plain, gzip or zstd.
fn decompressed(mut raw: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut first = Vec::new();
    // Looped over by `read_to_end`, as a pipe may give its first bytes one by one.
    raw.by_ref().take(4).read_to_end(&mut first)?;
    let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(raw));
    Ok(if gzip {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
    } else if zstd {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::stream::read::Decoder::with_buffer(whole)?))
    } else {
        Box::new(whole)
    })
}

/// Every record may have another number of fields: which are too few is told with the line's
/// number.
fn reader(lines: Lines) -> csv::Reader<Lines> {
    csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(lines)
}

impl Records {
    /// Records of what is plain, gzip or zstd.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub(crate) fn new(raw: impl Read + Send + 'static) -> io::Result<Self> {
        Ok(Self { reader: reader(Lines::new(decompressed(raw)?)), record: ByteRecord::new() })
    }

    /// The next record and the number of its first line, from 1 on; None at the end. Empty lines
    /// are skipped.
    ///
    /// # Errors
    /// When it cannot be read, or was compressed badly.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Found<'_>)>> {
        self.reader.get_mut().begin();
        let read = self.reader.read_byte_record(&mut self.record);
        let line = self.reader.get_ref().line;
        match read {
            Ok(true) => Ok(Some((line, Found::Record(&self.record)))),
            Ok(false) => Ok(None),
            Err(error) => match self.reader.get_mut().broken.take() {
                Some(broken) => {
                    // The parser is inside quotation marks: a new one goes on.
                    let empty = reader(Lines::new(Box::new(io::empty())));
                    let mut lines = std::mem::replace(&mut self.reader, empty).into_inner();
                    lines.skip_first()?;
                    self.reader = reader(lines);
                    Ok(Some((line, Found::Broken(broken))))
                }
                None => match error.into_kind() {
                    csv::ErrorKind::Io(error) => Err(error),
                    other => Err(io::Error::other(format!("{other:?}"))),
                },
            },
        }
    }
}

/// Hands one line at a time to the parser. The parser asks for another only where a record goes on
/// after a line break, so all that is held belongs to the present record.
struct Lines {
    inner: Box<dyn BufRead + Send>,
    /// The present record, and after a broken one also what follows it.
    held: Vec<u8>,
    /// How much of it the parser has.
    handed: usize,
    /// The number of the first line that is held.
    line: u64,
    /// Why the present record cannot be read.
    broken: Option<Broken>,
}

impl Lines {
    fn new(inner: Box<dyn BufRead + Send>) -> Self {
        Self { inner, held: Vec::new(), handed: 0, line: 1, broken: None }
    }

    /// Forgets the record before, and empty lines.
    fn begin(&mut self) {
        self.drop_first(self.handed);
        while let Some(end) = line_end(&self.held)
            && self.held.get(..end).is_some_and(is_blank)
        {
            self.drop_first(end);
        }
    }

    fn drop_first(&mut self, bytes: usize) {
        let breaks = self.held.drain(..bytes).filter(|byte| *byte == b'\n').count();
        self.line += u64::try_from(breaks).unwrap_or_default();
        self.handed = 0;
    }

    /// Forgets the first line that is held, or the rest of a line that is too long to be held.
    fn skip_first(&mut self) -> io::Result<()> {
        if let Some(end) = line_end(&self.held) {
            self.drop_first(end);
            return Ok(());
        }
        self.drop_first(self.held.len());
        self.line += 1;
        loop {
            let buffer = self.inner.fill_buf()?;
            let (used, done) = match line_end(buffer) {
                Some(end) => (end, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.inner.consume(used);
            if done {
                return Ok(());
            }
        }
    }

    /// Reads one line more. False at the end.
    fn pull(&mut self) -> io::Result<bool> {
        loop {
            let room = u64::try_from(MAX_HELD_BYTES.saturating_sub(self.held.len())).unwrap_or_default();
            let read = self.inner.by_ref().take(room).read_until(b'\n', &mut self.held)?;
            if self.held.len() >= MAX_HELD_BYTES {
                return Err(self.breaks(Broken::TooLong));
            }
            if read == 0 {
                return self.end();
            }
            if !is_blank(&self.held) {
                return Ok(true);
            }
            // Before a record: one that goes on has something in it.
            self.drop_first(self.held.len());
        }
    }

    /// The last line may lack its break. Where there was one and the record goes on, it is quoted.
    fn end(&mut self) -> io::Result<bool> {
        match self.held.last() {
            None => Ok(false),
            Some(b'\n') => Err(self.breaks(Broken::OpenQuote)),
            Some(_) => {
                self.held.push(b'\n');
                Ok(true)
            }
        }
    }

    fn breaks(&mut self, broken: Broken) -> io::Error {
        self.broken = Some(broken);
        io::ErrorKind::InvalidData.into()
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.handed == self.held.len() && !self.pull()? {
            return Ok(0);
        }
        let rest = self.held.get(self.handed..).unwrap_or_default();
        let most = line_end(rest).unwrap_or(rest.len()).min(buffer.len());
        let (Some(from), Some(to)) = (rest.get(..most), buffer.get_mut(..most)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.handed += most;
        Ok(most)
    }
}

/// Where the first line ends, its break included.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// The records with the numbers of their lines, their fields joined by `|`, up to an error.
    fn all(bytes: Vec<u8>) -> (Vec<(u64, String)>, Option<io::Error>) {
        let (mut records, mut found) = (Records::new(Cursor::new(bytes)).unwrap(), Vec::new());
        loop {
            match records.next() {
                Ok(Some((line, Found::Record(record)))) => {
                    let fields: Vec<_> = record.iter().map(|field| String::from_utf8(field.to_vec()).unwrap()).collect();
                    found.push((line, fields.join("|")));
                }
                Ok(Some((line, Found::Broken(broken)))) => found.push((line, broken.to_string())),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[track_caller]
    fn assert_read(bytes: Vec<u8>, wanted: &[(u64, &str)]) {
        let (found, error) = all(bytes);
        let found: Vec<_> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!((found.as_slice(), error.is_none()), (wanted, true), "{error:?}");
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_first_bytes_show_how_it_is_compressed() {
        let plain = b"a,b\r\n1,2\n\n3,4".to_vec();
        let wanted = [(1, "a|b"), (2, "1|2"), (4, "3|4")];
        assert_read(plain.clone(), &wanted);
        assert_read(gzip(&plain), &wanted);
        // Two files, one after the other.
        assert_read([gzip(b"a,b\r\n1,2\n\n"), gzip(b"3,4")].concat(), &wanted);
        assert_read(zstd::stream::encode_all(plain.as_slice(), 3).unwrap(), &wanted);
        assert_read(Vec::new(), &[]);
        assert_read(b"a".to_vec(), &[(1, "a")]);
    }

    #[test]
    fn fields_may_be_quoted_and_have_line_breaks() {
        let text = "a,b\n1,\"x, \"\"y\"\"\"\r\n\r\n2,\"one\r\ntwo\n\nthree\"\n3,5\" disk\n4, \"no\n";
        let wanted = [(1, "a|b"), (2, "1|x, \"y\""), (4, "2|one\r\ntwo\n\nthree"), (8, "3|5\" disk"), (9, "4| \"no")];
        assert_read(text.into(), &wanted);
        assert_read("1,\"\"\n\"\",2\n\"\"".into(), &[(1, "1|"), (2, "|2"), (3, "")]);
    }

    #[test]
    fn after_an_open_quotation_mark_the_next_line_counts() {
        let open = "has a quotation mark that is never closed";
        assert_read("1,\"x\n2,y\n\n3,z".into(), &[(1, open), (2, "2|y"), (4, "3|z")]);
        assert_read("1,\"x".into(), &[(1, open)]);
        // Where much follows, it is not all read to find that out.
        let text = format!("1,\"x\n{}", "2,y\n".repeat(50_000));
        let (found, error) = all(text.into_bytes());
        assert!(error.is_none() && found[0].1.contains("a quotation mark may be missing"), "{:?}", found[0]);
        assert_eq!((found.len(), &found[1], &found[50_000]), (50_001, &(2, "2|y".to_owned()), &(50_001, "2|y".to_owned())));
    }

    #[test]
    fn what_stands_before_the_end_of_a_cut_file_is_read() {
        let lines: String = (1..=100_000).map(|n| format!("{n},{}\n", n * 7919 % 10_007)).collect();
        for whole in [gzip(lines.as_bytes()), zstd::stream::encode_all(lines.as_bytes(), 3).unwrap()] {
            let (found, error) = all(whole[..whole.len() / 2].to_vec());
            assert!(error.is_some() && found.len() > 1000, "{} records, {error:?}", found.len());
            for (at, (line, record)) in (1..).zip(&found) {
                assert_eq!((*line, record.as_str()), (at, format!("{at}|{}", at * 7919 % 10_007).as_str()));
            }
        }
    }

    #[test]
    fn a_long_record_is_skipped() {
        let longest = "1".repeat(MAX_RECORD_BYTES);
        let text = format!("{longest}\r\n{longest}12\nx\n{}\ny", "2".repeat(3 * BUFFER_BYTES));
        let (found, error) = all(text.into_bytes());
        let brief: Vec<_> = found.iter().map(|(line, text)| (*line, text.len(), text.starts_with("has more than"))).collect();
        let told = Broken::TooLong.to_string().len();
        assert!(error.is_none());
        assert_eq!(brief, [(1, MAX_RECORD_BYTES, false), (2, told, true), (3, 1, false), (4, told, true), (5, 1, false)]);
    }
}
