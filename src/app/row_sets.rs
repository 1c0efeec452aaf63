//! The rows of all features, in the order in which a batch locks, loads and writes them: the one lock order of the program. A new
//! feature adds a line.

use crate::engine::lanes::NewRowSet;
use crate::engine::pairs::PairLocks;
use crate::features::broadcasts::rows::NoticeRows;
use crate::features::feed::rows::FeedRows;
use crate::features::groups::delivery::DeliveryRows;
use crate::features::groups::store::GroupRows;
use crate::features::inbox::devices::DeviceRows;
use crate::features::inbox::store::InboxRows;
use crate::features::notifications::store::NotificationRows;
use crate::features::relations::rows::RelationRows;
use crate::features::views::rows::ViewRows;

/// All of them.
pub const ROW_SETS: &[NewRowSet] = &[
    NewRowSet::of::<NoticeRows>(),
    NewRowSet::of::<PairLocks>(),
    NewRowSet::of::<RelationRows>(),
    NewRowSet::of::<FeedRows>(),
    NewRowSet::of::<NotificationRows>(),
    NewRowSet::of::<ViewRows>(),
    NewRowSet::of::<GroupRows>(),
    NewRowSet::of::<InboxRows>(),
    NewRowSet::of::<DeviceRows>(),
    // The last lock of a batch.
    NewRowSet::of::<DeliveryRows>(),
];
