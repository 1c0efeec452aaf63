import { createHeadmark, NoAnswerError, ProblemError } from "@headmark/client";

declare function getToken(options: { fresh: boolean }): Promise<string>;

const headmark = createHeadmark({
  baseUrl: "https://badges.example",
  token: (isRejected) => getToken({ fresh: isRejected }), // called again with `true` after a 401
});

export async function follow(target: string): Promise<string> {
  try {
    const params = { path: { user: "me", target } };
    const { data } = await headmark.PUT("/v1/users/{user}/following/{target}", { params, body: { special: true } });
    return "mutual" in data && data.mutual ? "friends" : "following";
  } catch (error) {
    if (error instanceof ProblemError && error.code === "blocked") return "blocked";
    if (error instanceof NoAnswerError) return "offline, try again";
    throw error;
  }
}
