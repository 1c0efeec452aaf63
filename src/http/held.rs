//! An answer's body that keeps a guard until its last byte has been handed to the socket.
//!
//! hyper takes a body's data long before the caller has it: HTTP/2 queues what the caller's window
//! does not allow yet. So each piece of the data carries the guard. The queue drops a piece when
//! the socket has taken it, and with the last piece the guard goes.
//!
//! hyper also forgets an HTTP/2 stream once it has the body's end, and then nobody could reset it.
//! So a long answer says its end only when all pieces are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::streams::{Sending, Unsent};

/// How long a piece is at most. What is handed to HTTP/1 is copied, so this and hyper's buffer
/// bound what a connection holds.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;

/// A body that keeps `guard`. `sending` hears of its pieces; that of a long answer over HTTP/2.
pub(crate) fn hold<G: Send + Sync + 'static>(body: Body, guard: G, sending: Option<Sending>) -> Body {
    Body::new(Held { inner: body, rest: Bytes::new(), ended: false, sending, guard: Arc::new(guard) })
}

struct Held<G> {
    inner: Body,
    /// What was taken from `inner` and is not handed on yet.
    rest: Bytes,
    /// Whether `inner` has ended.
    ended: bool,
    sending: Option<Sending>,
    guard: Arc<G>,
}

/// Some of the data, and the guard.
struct Piece<G> {
    bytes: Bytes,
    _unsent: Option<Unsent>,
    _guard: Arc<G>,
}

impl<G> AsRef<[u8]> for Piece<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<G: Send + Sync + 'static> HttpBody for Held<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            if this.ended {
                return this.sending.as_ref().map_or(Poll::Ready(()), |sending| sending.poll_sent(cx)).map(|()| None);
            }
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.ended = true,
            }
        }
        let bytes = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        let unsent = this.sending.as_ref().map(Sending::piece);
        let piece = Piece { bytes, _unsent: unsent, _guard: Arc::clone(&this.guard) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.sending.is_none() && self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (u64::try_from(self.rest.len()).unwrap_or(u64::MAX), self.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::http::watch::Watch;

    #[tokio::test]
    async fn the_guard_goes_with_the_last_piece() {
        let guard = Arc::new(());
        let text: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut body = hold(Body::from(text.clone()), Arc::clone(&guard), None);
        let (mut pieces, mut left) = (Vec::new(), 100_000);
        while let Some(frame) = body.frame().await {
            assert_eq!(body.size_hint().exact(), Some(left - u64::try_from(frame.as_ref().unwrap().data_ref().unwrap().len()).unwrap()));
            left = body.size_hint().exact().unwrap();
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        assert!(body.is_end_stream() && pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
        assert_eq!(pieces.concat(), text);
        drop(body);
        let last = pieces.pop().unwrap();
        drop(pieces);
        assert_eq!(Arc::strong_count(&guard), 2, "a piece is not sent yet");
        drop(last);
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[tokio::test]
    async fn the_guard_goes_with_a_body_that_nobody_reads() {
        let guard = Arc::new(());
        drop(hold(Body::from("never read"), Arc::clone(&guard), None));
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[tokio::test]
    async fn a_long_answer_over_http2_ends_when_its_pieces_are_sent() {
        let mut stream = Watch::new().begin();
        let sending = stream.answered(true);
        let mut body = hold(Body::from(vec![b'x'; PIECE_BYTES + 1]), stream, sending);
        let pieces = [body.frame().await.unwrap(), body.frame().await.unwrap()];
        assert!(!body.is_end_stream());
        let mut end = tokio::spawn(async move { body.frame().await.is_none() });
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut end).await.is_err(), "they are not sent yet");
        drop(pieces);
        assert!(end.await.unwrap());
    }
}
