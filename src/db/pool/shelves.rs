//! What is kept for later use, and who waits for it.
//!
//! A connection to Postgres is woken by the runtime that opened it, its *home*. Who uses one from
//! another runtime pays for a wake-up between threads, at its read and at its end. So everybody gets one
//! from home where there is one, and any other rather than none.

use std::collections::VecDeque;

use tokio::sync::oneshot;

/// The runtime that opened it; None where that makes no difference.
pub(super) type Home = Option<tokio::runtime::Id>;

/// One in so many goes to whoever has waited longest, wherever it is from: those whose home has none
/// are served, too, and then have one of their own. Each of these costs three wake-ups between threads.
const FAIR_EVERY: u32 = 64;

/// How many of those who wait are looked at for one from home.
const MAX_LOOK: usize = 64;

/// The shortest queue from which waits that have ended are removed.
const MIN_LOOK: usize = 64;

/// What is kept, and who waits for it. Never both, but for those who have given up.
#[derive(Debug)]
pub(super) struct Shelves<T> {
    /// What was used last is on top, so that what nobody needs grows old.
    kept: Vec<(Home, T)>,
    waiting: VecDeque<(Home, oneshot::Sender<T>)>,
    /// From which length of the queue on, waits that have ended are removed. Twice what was left the last time:
    /// where most still wait, not each further wait looks at all.
    look_at: usize,
    /// How many were handed to somebody who waited.
    handed: u32,
    is_closed: bool,
}

impl<T> Default for Shelves<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), waiting: VecDeque::new(), look_at: MIN_LOOK, handed: 0, is_closed: false }
    }
}

impl<T> Shelves<T> {
    /// The last used from this home, or else from another.
    pub(super) fn take(&mut self, home: Home) -> Option<T> {
        let own = self.kept.iter().rposition(|(of, _)| *of == home);
        match own {
            Some(at) => Some(self.kept.remove(at).1),
            None => self.kept.pop().map(|(_, kept)| kept),
        }
    }

    /// Where nothing is kept: waits for the next that is put back. None once all is closed.
    pub(super) fn wait(&mut self, home: Home) -> Option<oneshot::Receiver<T>> {
        if self.is_closed {
            return None;
        }
        // While the database is away nothing is put back, and everybody gives up in the end.
        if self.waiting.len() >= self.look_at {
            self.waiting.retain(|(_, sender)| !sender.is_closed());
            self.look_at = (2 * self.waiting.len()).max(MIN_LOOK);
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back((home, sender));
        Some(receiver)
    }

    /// Hands this to somebody who waits, or keeps it. Returns it where all is closed.
    pub(super) fn put(&mut self, home: Home, mut item: T) -> Option<T> {
        if self.is_closed {
            return Some(item);
        }
        while let Some(sender) = self.next(home) {
            match sender.send(item) {
                Ok(()) => return None,
                // Its receiver is gone.
                Err(back) => item = back,
            }
        }
        self.kept.push((home, item));
        None
    }

    /// Who is next for something of this home.
    fn next(&mut self, home: Home) -> Option<oneshot::Sender<T>> {
        self.handed = self.handed.wrapping_add(1);
        let is_fair = self.handed.is_multiple_of(FAIR_EVERY);
        let own = if is_fair { None } else { self.waiting.iter().take(MAX_LOOK).position(|(of, _)| *of == home) };
        self.waiting.remove(own.unwrap_or(0)).map(|(_, sender)| sender)
    }

    /// The one that nobody has used for longest, where that is true of it.
    pub(super) fn take_oldest_if(&mut self, is_old: impl Fn(&T) -> bool) -> Option<T> {
        let (_, oldest) = self.kept.first()?;
        is_old(oldest).then(|| self.kept.remove(0).1)
    }

    /// Keeps nothing from now on, and has nobody wait. Returns what was kept.
    pub(super) fn close(&mut self) -> Vec<T> {
        self.is_closed = true;
        self.waiting.clear();
        std::mem::take(&mut self.kept).into_iter().map(|(_, kept)| kept).collect()
    }

    /// Those that are kept.
    #[cfg(test)]
    pub(super) fn kept(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.kept.iter_mut().map(|(_, kept)| kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runtimes.
    fn homes() -> [Home; 2] {
        [(); 2].map(|()| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            Some(runtime.handle().id())
        })
    }

    #[test]
    fn each_takes_the_last_from_home_and_any_rather_than_none() {
        let [here, there] = homes();
        let mut shelves = Shelves::default();
        for (home, item) in [(here, 1), (here, 2), (there, 3), (here, 4), (there, 5)] {
            assert_eq!(shelves.put(home, item), None);
        }
        let taken: Vec<_> = [here, there, there, there, there, there].map(|home| shelves.take(home)).into();
        assert_eq!(taken, [Some(4), Some(5), Some(3), Some(2), Some(1), None]);
    }

    #[test]
    fn what_comes_back_goes_to_those_from_its_home_and_at_times_to_whoever_waits_longest() {
        let [here, there] = homes();
        let mut shelves = Shelves::default();
        let mut other = shelves.wait(there).unwrap();
        let mut own: Vec<_> = (0..2 * FAIR_EVERY).map(|_| shelves.wait(here).unwrap()).collect();
        for item in 1..FAIR_EVERY {
            assert_eq!(shelves.put(here, item), None);
        }
        assert!(other.try_recv().is_err());
        let served = own.iter_mut().map_while(|waiting| waiting.try_recv().ok()).count();
        assert_eq!(served, usize::try_from(FAIR_EVERY).unwrap() - 1, "in turn");
        shelves.put(here, 100);
        assert_eq!(other.try_recv(), Ok(100));
    }

    #[test]
    fn what_nobody_takes_any_more_is_kept() {
        let [here, there] = homes();
        let mut shelves = Shelves::default();
        drop((shelves.wait(here), shelves.wait(there), shelves.wait(here)));
        assert_eq!(shelves.put(here, 1), None);
        assert_eq!((shelves.take(there), shelves.take(here)), (Some(1), None));
    }

    #[test]
    fn those_who_give_up_do_not_pile_up_and_the_others_keep_their_turns() {
        let [here, there] = homes();
        let mut shelves = Shelves::default();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(shelves.wait(there).unwrap());
            (0..100 * MIN_LOOK).for_each(|_| drop(shelves.wait(here)));
            assert!(shelves.waiting.len() <= MIN_LOOK, "{} in the queue", shelves.waiting.len());
        }
        for (item, mut receiver) in (1..).zip(waiting) {
            assert_eq!(shelves.put(here, item), None);
            assert_eq!(receiver.try_recv(), Ok(item), "in turn");
        }
    }

    #[test]
    fn where_many_wait_not_each_one_more_looks_at_all() {
        let mut shelves: Shelves<i32> = Shelves::default();
        let waiting: Vec<_> = (0..=4 * MIN_LOOK).map(|_| shelves.wait(None).unwrap()).collect();
        assert_eq!((shelves.waiting.len(), shelves.look_at), (4 * MIN_LOOK + 1, 8 * MIN_LOOK), "all of them wait");
        drop(waiting);
        (0..8 * MIN_LOOK).for_each(|_| drop(shelves.wait(None)));
        assert!(shelves.waiting.len() <= MIN_LOOK && shelves.look_at == MIN_LOOK, "nobody waits");
    }

    #[test]
    fn a_closed_one_keeps_nothing_and_has_nobody_wait() {
        let mut shelves = Shelves::default();
        shelves.put(None, 1);
        let mut waiting = shelves.wait(None).unwrap();
        assert_eq!(shelves.close(), [1]);
        assert!(matches!(waiting.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(shelves.wait(None).is_none());
        assert_eq!((shelves.put(None, 2), shelves.take(None)), (Some(2), None));
    }

    #[test]
    fn only_the_oldest_is_let_go() {
        let mut shelves = Shelves::default();
        for item in [5, 1, 9] {
            assert_eq!(shelves.put(None, item), None);
        }
        assert_eq!(shelves.take_oldest_if(|item| *item < 3), None);
        assert_eq!(shelves.take_oldest_if(|item| *item > 3), Some(5));
        assert_eq!(shelves.take(None), Some(9));
    }
}
