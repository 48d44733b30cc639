use super::*;

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(|finding| finding.to_string()).collect()
}

#[test]
fn a_file_has_one_title_and_it_stands_first() {
    assert!(findings(&[("a.md", "# A\n\n```sh\n# a comment\n```\n## B\n")]).is_empty());
    assert!(findings(&[("a.md", "A\n")])[0].contains("no title"));
    assert!(
        findings(&[("a.md", "\n# A\n")])[0].starts_with("a.md:2: the title is not the first line")
    );
    assert!(findings(&[("a.md", "# A\n# B\n")])[0].starts_with("a.md:2: second title"));
    assert!(
        findings(&[("a.md", "# A\n```sh\n# B\n")])[0]
            .starts_with("a.md:2: this fence is not closed")
    );
}

#[test]
fn relative_links_lead_to_files_directories_and_headings() {
    let target = ("docs/b.md", "# B\n\n## The `two` words, here\n");
    for link in ["docs/b.md", "docs", "docs/b.md#the-two-words-here", "#a", "https://example.org/x"]
    {
        let text = format!("# A\n[x]({link}), [`y`]({link}) and [z]\n\n[z]: {link}\n");
        assert_eq!(findings(&[("a.md", &text), target]), [""; 0], "{link}");
    }
    for link in ["b.md", "docs/c.md", "docs/b.md#one", "#b"] {
        assert_eq!(
            findings(&[("a.md", &format!("# A\n[x]({link}) [`y`]({link})\n")), target]).len(),
            2,
            "{link}"
        );
    }
    assert!(findings(&[("docs/a.md", "# A\n[x](../docs/./b.md)\n"), target]).is_empty());
    assert!(findings(&[("a.md", "# A\n`[x](nowhere)` is code\n")]).is_empty());
}

#[test]
fn lines_have_at_most_100_columns() {
    let words = "word ".repeat(20) + "x";
    let found = findings(&[("a.md", &format!("# A\n\n{words}\n"))]);
    assert_eq!(found, ["a.md:3: more than 100 columns: break the line"]);
    let table = format!("# A\n\n| a |\n|---|\n| {words} |\n");
    let fence = format!("# A\n\n```sh\n{words}\n```\n");
    let url = format!("# A\n\n{words} <https://example.org>\n");
    for text in [table, fence, url] {
        assert_eq!(findings(&[("a.md", &text)]), [""; 0]);
    }
    assert_eq!(findings(&[(GENERATED, &format!("# A\n\n{words}\n"))]), [""; 0]);
}
