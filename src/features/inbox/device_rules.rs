//! The rules of devices, over the rows of a batch.

use serde::Serialize;

use super::devices::{Device, DeviceRows};
use super::{DeviceOut, MAX_DEVICES};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::engine::lanes::Rows;
use crate::features::push;

/// The device as it was, or a new one; seen now.
fn seen(rows: &Rows, user: UserId, device: &ClientId, now: UnixMs) -> Result<Device, Problem> {
    if let Some(known) = rows.get::<DeviceRows>().get(user, device) {
        return Ok(Device { seen_at: known.seen_at.max(now), ..known });
    }
    if rows.get::<DeviceRows>().is_full(user) {
        let detail = format!("The user has reached the limit of {MAX_DEVICES} devices. Delete one first.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    Ok(Device { cursor: None, push: false, seen_at: now, created_at: now })
}

/// Sets or removes a device. The flag in the user's own row says whether any has push.
fn set(rows: &mut Rows, user: UserId, device: &ClientId, row: Option<Device>, now: UnixMs) {
    let devices = rows.get_mut::<DeviceRows>();
    match row {
        Some(row) => devices.set(user, device, row),
        None => devices.remove(user, device),
    }
    let push = rows.get::<DeviceRows>().of_user(user).any(|device| device.push);
    push::set_push(rows, user, push, now);
}

/// A device whose cursor was put. As JSON, the device alone.
#[derive(Debug, Serialize)]
pub(super) struct CursorPut {
    #[serde(flatten)]
    pub(super) device: DeviceOut,
    /// Whether the cursor is another than before, or new.
    #[serde(skip)]
    pub(super) has_moved: bool,
}

/// A device has read the inbox up to a row. A cursor never goes back.
pub(super) fn put_cursor(rows: &mut Rows, user: UserId, device: &ClientId, seq: i64, now: UnixMs) -> Result<CursorPut, Problem> {
    let head = rows.user(user).inbox_seq;
    let before = seen(rows, user, device, now)?;
    let row = Device { cursor: Some(seq.min(head).max(before.cursor.unwrap_or(0))), ..before };
    set(rows, user, device, Some(row), now);
    Ok(CursorPut { device: DeviceOut::new(device.clone(), row, head), has_moved: row.cursor != before.cursor })
}

/// Whether services are to hear of every change of the user's numbers because of this device.
pub(super) fn put_push(rows: &mut Rows, user: UserId, device: &ClientId, push: bool, now: UnixMs) -> Result<DeviceOut, Problem> {
    let row = Device { push, ..seen(rows, user, device, now)? };
    set(rows, user, device, Some(row), now);
    Ok(DeviceOut::new(device.clone(), row, rows.user(user).inbox_seq))
}

/// A device is gone.
pub(super) fn delete(rows: &mut Rows, user: UserId, device: &ClientId, now: UnixMs) -> Result<(), Problem> {
    let unknown = || Problem::new(Code::NotFound, format!("Device {device} does not exist."));
    rows.get::<DeviceRows>().get(user, device).ok_or_else(unknown)?;
    set(rows, user, device, None, now);
    Ok(())
}

/// A device goes that was not seen since. It may have come back meanwhile. Of a user that is erased, all
/// devices go anyway.
/// Whether it went.
pub(super) fn forget(rows: &mut Rows, user: UserId, device: &ClientId, before: UnixMs, now: UnixMs) -> bool {
    let is_old = !rows.is_erased(user) && rows.get::<DeviceRows>().get(user, device).is_some_and(|known| known.seen_at < before);
    if is_old {
        set(rows, user, device, None, now);
    }
    is_old
}
