"""What scripts/fuzz-api.sh has to tell schemathesis: rules of the API that an OpenAPI document cannot hold.

To add one: say why the document cannot, and match no more than that case.
"""

import schemathesis

MAX_ID = 2**63 - 1
# Long enough to hold the request, short enough for many of them.
WAIT_S = "1"
# How details begin that are about two values, or about the clock.
BETWEEN = ("only a list of members has pages", "the time is past")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Puts right what would only keep a request from being tried."""
    # To JSON Schema 7.0 is an integer. Here, as to many parsers, an integer is written without a point.
    if any(isinstance(leaf, float) and leaf.is_integer() for leaf in leaves(case.body)):
        # Only then: a body that is set counts as another one than was made.
        case.body = without_points(case.body)
    # A poll may be held for a minute, which is right and would take all the time that there is.
    query = case.query or {}
    wait = str(query.get("wait", ""))
    if wait.isdecimal() and 1 < int(wait) <= 60:
        query["wait"] = WAIT_S


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False for what only looks like a failure: a request that fits the document and is rightly refused all the same."""
    # A post may have the id `count`: to put and to delete it stand in the document under `posts/{post_id}`.
    if case.operation.path == "/v1/users/{user}/posts/count" and "Undocumented methods advertised: DELETE, PUT" in failure.message:
        return False
    if type(failure).__name__ != "RejectedPositiveData" or response is None:
        return True
    try:
        problem = response.json()
        details = [error["detail"] for error in problem.get("errors", [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        return True
    # Which keys were used before is state.
    if problem.get("code") == "idempotency_key_reused":
        return False
    # Which numbers an inbox has given, and in which epoch, is state.
    if problem.get("code") in ("inbox_reset", "cursor_expired"):
        return False
    # Which cursors were given, and for which list, is state.
    if problem.get("code") == "invalid_cursor":
        return False
    # That two values of a path must differ is nothing that a document can say.
    path = case.path_parameters or {}
    if problem.get("code") == "self_relation" and path.get("user") in (path.get("target"), path.get("fan")):
        return False
    # What was deleted, withdrawn or recalled before, or is kept no longer, is state.
    if problem.get("code") == "gone":
        return False
    # Two parameters of which one needs the other, or bounds it; and a time that is over by now.
    if any(detail.startswith(BETWEEN) or detail.endswith("messages") and " to " in detail for detail in details):
        return False
    # Fields of which one excludes another: the document's generator knows no `not`.
    if any(detail.startswith("give either ") for detail in details):
        return False
    # No text may have U+0000, which Postgres cannot hold; said at every field, it would bury what is of that field.
    if any(detail == "a text must not contain the character U+0000" for detail in details):
        return False
    # 2^63-1 has 19 digits; a pattern that draws the line within those could not be read.
    if any(detail.startswith(("a user id is a whole number", "a notification id is a whole number", "a group id is a whole number")) for detail in details) and has_large_id([case.body, case.path_parameters, case.query]):
        return False
    return True


def leaves(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        yield value
        return
    for inner in value:
        yield from leaves(inner)


def without_points(value):
    if type(value) is dict:
        return {key: without_points(inner) for key, inner in value.items()}
    if type(value) is list:
        return [without_points(inner) for inner in value]
    return int(value) if type(value) is float and value.is_integer() else value


def has_large_id(value):
    texts = (text for leaf in leaves(value) for text in str(leaf).split(","))
    return any(text.isdecimal() and int(text) > MAX_ID for text in texts)
