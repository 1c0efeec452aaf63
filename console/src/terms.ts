// Short names for the bodies that the console shows.

import type { components } from "@headmark/client";

type Schemas = components["schemas"];

export type Explain = Schemas["ExplainOut"];
export type ListedUser = Schemas["ListedUserOut"];
export type UserGroup = Schemas["UserGroupOut"];
export type Direct = Schemas["DirectOut"];
export type Device = Schemas["DeviceOut"];
export type UserNotification = Schemas["NotificationEntryOut"];
export type RelationCounts = Schemas["RelationCountsOut"];
export type Ready = Schemas["ReadyOut"];

/** Written out: the fields of the generated type exclude each other. */
export interface Relation {
  user_id: string;
  following: boolean;
  secret: boolean;
  special: boolean;
  blocking: boolean;
}
