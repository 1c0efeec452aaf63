//! HTTP/1.1 over one kept-alive connection, as little of it as a load generator needs: what the
//! client costs is taken from the server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

/// Room for one read.
const READ_BYTES: usize = 16 * 1024;
/// No answer here is longer; more means that the stream is out of step.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A kept-alive connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// What was read; the answer at its front is taken out before the next request.
    buffer: Vec<u8>,
}

/// One answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Where an answer ends in the buffer.
struct Frame {
    status: u16,
    head_bytes: usize,
    body_bytes: usize,
}

impl Answer {
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a whole request and reads the whole answer; only its status is looked at.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<u16> {
        let frame = self.roundtrip(request).await?;
        self.buffer.drain(..frame.head_bytes + frame.body_bytes);
        Ok(frame.status)
    }

    /// The same, with headers and body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        let frame = self.roundtrip(request).await?;
        let mut answer: Vec<u8> = self.buffer.drain(..frame.head_bytes + frame.body_bytes).collect();
        let body = answer.split_off(frame.head_bytes);
        let head = String::from_utf8(answer)?;
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        Ok(Answer { status: frame.status, headers, body })
    }

    async fn roundtrip(&mut self, request: &[u8]) -> Result<Frame> {
        self.stream.write_all(request).await?;
        loop {
            if let Some(frame) = frame(&self.buffer)?
                && self.buffer.len() >= frame.head_bytes + frame.body_bytes
            {
                return Ok(frame);
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if self.buffer.len() > MAX_ANSWER_BYTES {
                return Err("an answer without end".into());
            }
        }
    }
}

/// The answer at the front of the buffer, once its head is whole.
fn frame(buffer: &[u8]) -> Result<Option<Frame>> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, _) = buffer.split_at(end);
    // HTTP/1.1 200 OK
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse().ok());
    let status: u16 = status.ok_or("an answer that is not HTTP/1.1")?;
    let mut body_bytes = 0;
    for line in head.split(|byte| *byte == b'\n') {
        let Some((name, value)) = line.split_at_checked(15) else { continue };
        if name.eq_ignore_ascii_case(b"content-length:") {
            body_bytes = std::str::from_utf8(value)?.trim().parse()?;
        } else if line.get(..18).is_some_and(|name| name.eq_ignore_ascii_case(b"transfer-encoding:")) {
            return Err("an answer in chunks, which this client does not read".into());
        }
    }
    Ok(Some(Frame { status, head_bytes: end + 4, body_bytes: if matches!(status, 204 | 304) { 0 } else { body_bytes } }))
}

/// A request without a body.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    with_body(method, path, headers, "")
}

/// A request with a JSON body.
pub(crate) fn with_body(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    // An open server takes requests for this machine only.
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// A request with this as its JSON body.
pub(crate) fn json(method: &str, path: &str, body: &serde_json::Value) -> Vec<u8> {
    with_body(method, path, &[], &body.to_string())
}

/// Asks once, over a connection of its own.
pub(crate) async fn ask_once(address: SocketAddr, request: &[u8]) -> Result<Answer> {
    Connection::open(address).await?.ask(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_framed_by_their_length() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nhelloHTTP/1.1";
        let frame = frame(answer).unwrap().unwrap();
        assert_eq!((frame.status, frame.body_bytes), (200, 5));
        assert_eq!(&answer[frame.head_bytes..frame.head_bytes + 5], b"hello");
    }

    #[test]
    fn an_answer_without_a_body_ends_with_its_head() {
        let whole = frame(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n").unwrap().unwrap();
        assert_eq!((whole.status, whole.body_bytes), (304, 0));
        assert!(frame(b"HTTP/1.1 200 OK\r\nconte").unwrap().is_none());
        assert!(frame(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(frame(b"SSH-2.0-something\r\n\r\n").is_err());
    }
}
