//! What a statement says on a distributed database of the owners of its rows.

/// The text with a further condition beside each that equates a column with the owner: which
/// owners all rows have together. It follows from the others, but only this one tells Citus which
/// shards it needs. `number` is that of the parameter.
pub(super) fn by_owner(text: &str, owner: &str, number: usize) -> String {
    let equals = format!(" = r.{owner}");
    let mut said = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&equals) {
        said.push_str(before);
        said.push_str(&equals);
        let column = before.rsplit(|char: char| !is_of_name(char)).next().unwrap_or_default();
        if !after.starts_with(is_of_name) && !column.is_empty() {
            said.push_str(&format!(" and {column} = any(${number})"));
        }
        rest = after;
    }
    said.push_str(rest);
    // `where (owner, …) in (select owner, … from {rows} r)`
    match said.split_once(" from {rows} r)") {
        Some((before, after)) if before.contains(" in (select ") => {
            format!("{before} from {{rows}} r) and {owner} = any(${number}){after}")
        }
        _ => said,
    }
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::by_owner;

    #[test]
    fn each_condition_on_the_owner_says_which_owners_there_are() {
        let says = |text, expected: &str| assert_eq!(by_owner(text, "user_id", 2), expected);
        says(
            "select 1 from {rows} r join users u on u.user_id = r.user_id and u.a = r.a",
            "select 1 from {rows} r join users u on u.user_id = r.user_id and u.user_id = any($2) and u.a = r.a",
        );
        says(
            "(select count(*) from posts p where p.user_id = r.user_id)",
            "(select count(*) from posts p where p.user_id = r.user_id and p.user_id = any($2))",
        );
        says("where a.user_ids = r.user_ids", "where a.user_ids = r.user_ids");
        says(
            "delete from t where (user_id, k) in (select user_id, k from {rows} r) and gone = 0",
            "delete from t where (user_id, k) in (select user_id, k from {rows} r) and user_id = any($2) and gone = 0",
        );
        says("delete from {rows} r)", "delete from {rows} r)");
    }
}
