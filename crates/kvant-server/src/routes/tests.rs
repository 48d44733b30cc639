use super::*;
use serde_json::Value;

const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::DELETE,
    Method::POST,
    Method::OPTIONS,
    Method::PATCH,
    Method::TRACE,
];

#[test]
fn the_table_of_routes_is_consistent() {
    for (index, route) in Route::ALL.into_iter().enumerate() {
        assert_eq!(
            route as usize, index,
            "{route:?} has a row of its own in the counters"
        );
        assert_eq!(Route::of(route.path()), Some(route));
        let listed: Vec<&str> = route.allow().split(", ").collect();
        for method in METHODS {
            assert_eq!(
                route.allows(&method),
                listed.contains(&method.as_str()),
                "{method} {}",
                route.path()
            );
        }
        assert!(Plane::Both.serves(route));
        let planes = [Plane::Data, Plane::Operator]
            .into_iter()
            .filter(|plane| plane.serves(route))
            .count();
        assert_eq!(planes, if route == Route::Status { 2 } else { 1 }, "{route:?}");
    }
}

#[test]
fn the_openapi_document_lists_these_routes_and_methods() {
    let document: Value = serde_json::from_str(openapi::DOCUMENT).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), Route::ALL.len());
    for route in Route::ALL {
        let operations = paths[route.path()].as_object().unwrap();
        let mut documented: Vec<String> = operations.keys().map(|method| method.to_uppercase()).collect();
        let mut allowed: Vec<&str> = route.allow().split(", ").collect();
        documented.sort_unstable();
        allowed.sort_unstable();
        assert_eq!(documented, allowed, "{}", route.path());
    }
}
