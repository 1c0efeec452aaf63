//! Steps that are collected before they are handed on, up to a number and to a size.

/// How large the steps that are handed on together may be.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Collects steps.
#[derive(Debug)]
pub(crate) struct Window<S> {
    steps: Vec<S>,
    bytes: usize,
    max_steps: usize,
}

impl<S> Window<S> {
    pub(crate) fn new(max_steps: usize) -> Self {
        Self { steps: Vec::new(), bytes: 0, max_steps }
    }

    /// Adds a step that takes so much memory. Whether it is time to hand them on.
    pub(crate) fn push(&mut self, step: S, bytes: usize) -> bool {
        self.steps.push(step);
        self.bytes += bytes;
        self.steps.len() >= self.max_steps || self.bytes >= MAX_BYTES
    }

    /// All of them, in their order.
    pub(crate) fn take(&mut self) -> Vec<S> {
        self.bytes = 0;
        std::mem::take(&mut self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_handed_on_by_number_and_by_size() {
        let mut window = Window::new(3);
        assert_eq!([window.push(1, 5), window.push(2, 5), window.push(3, 5)], [false, false, true]);
        assert_eq!(window.take(), [1, 2, 3]);
        assert_eq!([window.push(4, MAX_BYTES - 1), window.push(5, 1)], [false, true]);
        assert_eq!(window.take(), [4, 5]);
        assert_eq!([window.push(6, 1), window.push(7, 1), window.push(8, 1)], [false, false, true]);
    }
}
