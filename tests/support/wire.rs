//! One kept-alive connection of HTTP/1.1 and nothing around it: a test can hold thousands.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection to a node.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    host: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct WireReply {
    /// The status line and the headers.
    pub head: String,
    pub body: String,
}

impl Wire {
    pub async fn connect(base: &str) -> io::Result<Self> {
        let host = base.strip_prefix("http://").unwrap().to_owned();
        Ok(Self { stream: TcpStream::connect(&host).await?, host })
    }

    /// GET, with `If-None-Match` where there is a tag.
    pub async fn get(&mut self, path: &str, tag: &str) -> io::Result<WireReply> {
        let known = if tag.is_empty() { String::new() } else { format!("if-none-match: {tag}\r\n") };
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{known}\r\n", self.host);
        self.ask(&request).await
    }

    /// POST of a JSON text under an idempotency key.
    pub async fn post_once(&mut self, path: &str, key: &str, body: &str) -> io::Result<WireReply> {
        let length = body.len();
        let headers =
            format!("host: {}\r\nidempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {length}", self.host);
        self.ask(&format!("POST {path} HTTP/1.1\r\n{headers}\r\n\r\n{body}")).await
    }

    async fn ask(&mut self, request: &str) -> io::Result<WireReply> {
        self.stream.write_all(request.as_bytes()).await?;
        let (mut text, mut bytes) = (String::new(), [0; 2048]);
        loop {
            let read = self.stream.read(&mut bytes).await?;
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("closed in the middle of a request: {text}")));
            }
            text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let reply = WireReply { head: head.to_owned(), body: body.to_owned() };
            if reply.body.len() >= reply.header("content-length").parse().unwrap_or(0) {
                return Ok(reply);
            }
        }
    }
}

impl WireReply {
    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}
