//! Recorded statements, grouped into transactions.

/// Statements from BEGIN to COMMIT, or one alone.
pub type Transaction = Vec<String>;

/// Whether a statement sets what the comparison holds fixed.
pub fn is_fixed_setting(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    let Some(pragma) = lower.strip_prefix("pragma") else {
        return false;
    };
    let name = pragma.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
    matches!(
        name,
        Some(
            "journal_mode"
                | "synchronous"
                | "locking_mode"
                | "wal_autocheckpoint"
                | "wal_checkpoint"
                | "journal_size_limit"
                | "page_size"
        )
    )
}

/// Groups statements from BEGIN to COMMIT, END or ROLLBACK; each other one stands alone.
pub fn into_transactions(statements: Vec<String>) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    let mut open: Option<Transaction> = None;
    for sql in statements {
        let upper = sql.to_ascii_uppercase();
        let mut words =
            upper.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let (first, second) = (words.next(), words.next());
        let to_savepoint = upper.split_ascii_whitespace().any(|word| word == "TO");
        match (first, open.take()) {
            (Some("BEGIN"), None) => open = Some(vec![sql]),
            (Some("COMMIT" | "END"), Some(mut group)) => {
                group.push(sql);
                transactions.push(group);
            }
            (Some("ROLLBACK"), Some(mut group)) if !to_savepoint && second != Some("TO") => {
                group.push(sql);
                transactions.push(group);
            }
            (_, Some(mut group)) => {
                group.push(sql);
                open = Some(group);
            }
            (_, None) => transactions.push(vec![sql]),
        }
    }
    transactions.extend(open);
    transactions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_to_commit_is_one_transaction() {
        let sql = [
            "SELECT 1",
            "BEGIN EXCLUSIVE",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "DELETE FROM t",
            "COMMIT",
            "DELETE FROM t",
        ];
        let sizes: Vec<_> =
            into_transactions(sql.map(String::from).to_vec()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 5, 1]);
    }

    #[test]
    fn settings_that_would_spoil_the_comparison_are_known() {
        assert!(is_fixed_setting("PRAGMA journal_mode=off"));
        assert!(is_fixed_setting("pragma  synchronous = 1"));
        assert!(!is_fixed_setting("PRAGMA user_version = 1"));
        assert!(!is_fixed_setting("SELECT 'pragma synchronous'"));
    }
}
