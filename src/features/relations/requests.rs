//! Requests to follow over the rows of a batch: the one place that changes them, with their counts
//! and the badge.

use super::badge;
use super::rows::RelationRows;
use super::state::FollowOptions;
use super::{Fans, Pair, Raised, Request};
use crate::base::clock::UnixMs;
use crate::base::ids::Name;
use crate::engine::lanes::Rows;

/// Brings a request to what the rule says: one like this, or none.
pub(super) fn set(rows: &mut Rows, pair: Pair, options: Option<FollowOptions>, badge: Option<&Name>, now: UnixMs) {
    match (options, rows.get::<RelationRows>().request(pair)) {
        (None, _) => end(rows, pair, badge),
        (Some(options), Some(request)) => set_request(rows, pair, Some(Request { options, ..request })),
        (Some(options), None) => {
            let raised = badge.and_then(|badge| badge::raise(rows, pair.followee, badge));
            begin(rows, pair, options, now, raised);
        }
    }
}

/// Makes a request, which is not there.
pub(super) fn begin(rows: &mut Rows, pair: Pair, options: FollowOptions, since: UnixMs, raised: Option<Raised>) {
    set_request(rows, pair, Some(Request { since, options, raised }));
}

/// Removes a request, if it is there.
pub(super) fn end(rows: &mut Rows, pair: Pair, badge: Option<&Name>) {
    let Some(request) = rows.get::<RelationRows>().request(pair) else { return };
    set_request(rows, pair, None);
    badge::take_back(rows, pair.followee, request.raised.as_ref(), badge);
}

/// Sets, changes or removes a request, takes both counts along, and raises the revision of the user
/// who asks. One that is the same changes nothing.
fn set_request(rows: &mut Rows, pair: Pair, request: Option<Request>) {
    let before = rows.get::<RelationRows>().request(pair);
    if before == request {
        return;
    }
    let step = i64::from(request.is_some()) - i64::from(before.is_some());
    rows.revise(pair.follower, |_| {});
    let mut own = rows.get::<RelationRows>().own(pair.follower);
    own.requests += step;
    own.versions.requests = rows.revision(pair.follower);
    let set = rows.get_mut::<RelationRows>();
    set.own.set(&pair.follower, own);
    set.add_fans(pair.followee, Fans { requests: step, ..Fans::default() });
    set.requests.set(&pair, request);
}
