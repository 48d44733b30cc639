use super::without_secret;

#[test]
fn the_command_line_omits_values_of_headers() {
    let headers = [("Authorization".to_owned(), "Bearer xyz".to_owned())];
    for (arg, shown) in [
        ("-HAuthorization: Bearer xyz", "-HAuthorization: ..."),
        ("Authorization:Bearer xyz ", "Authorization:..."),
        ("--header=Authorization: Bearer xyz", "--header=Authorization: ..."),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
    ] {
        assert_eq!(without_secret(arg.to_owned(), &headers), shown);
    }
}
