import { expect, it } from "vitest";
import { parseRoute } from "../../src/route.js";
import { parseUsers, peopleOf } from "../../src/try/people.js";
import { positions, sizeOf } from "../../src/ui/strip.js";

it("positions that were taken back are read from the answer of explain", () => {
  expect([...positions("2 4-6 9", 5, 9)]).toEqual([5, 6, 9]);
  expect([...positions("", 1, 9)]).toEqual([]);
  // A range of the server may be longer than anybody can draw.
  expect([...positions("1-9007199254740991", 8, 10)]).toEqual([8, 9, 10]);
  expect([sizeOf("2 4-6 9"), sizeOf("")]).toEqual([5, 0]);
});

it("three different ids are users, and nothing else is", () => {
  expect(parseUsers(" 7, 8 9223372036854775807")).toEqual(["7", "8", "9223372036854775807"]);
  for (const text of ["", "7,8", "7,8,8", "7,8,9,10", "0,1,2", "7,8,9223372036854775808", "a,b,c", "-1,2,3", "01,2,3"]) {
    expect(parseUsers(text), text).toBeNull();
  }
  expect(peopleOf("7,8,8").map(({ id }) => id)).toEqual(["900001", "900002", "900003"]);
});

it("any hash leads somewhere", () => {
  expect(parseRoute("")).toEqual({ part: "try", argument: null });
  expect(parseRoute("#/lookup/42")).toEqual({ part: "lookup", argument: "42" });
  expect(parseRoute("#/lookup/%3Cb%3E")).toEqual({ part: "lookup", argument: "<b>" });
  expect(parseRoute("#/lookup/%")).toEqual({ part: "lookup", argument: "%" });
  // Not the user 42, whom nobody asked for.
  for (const hash of ["#/lookup/42/43", "#/health/x", "#/try/1,2,3/4"]) expect(parseRoute(hash).part, hash).toBeNull();
  expect(parseRoute("#/lookup/")).toEqual({ part: "lookup", argument: null });
  expect(parseRoute("#/nowhere/x/y")).toEqual({ part: null, argument: "x" });
});
