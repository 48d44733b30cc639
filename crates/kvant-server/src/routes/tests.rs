use super::*;
use crate::http::Plane;
use http::Method;
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
        assert_eq!(route as usize, index, "{route:?} has a row of its own in the counters");
        assert_eq!(Route::from_name(route.name()), Some(route));
        let listed: Vec<&str> = route.allow().split(", ").collect();
        for method in METHODS {
            assert_eq!(
                route.allows(&method),
                listed.contains(&method.as_str()),
                "{method} {}",
                route.name()
            );
        }
        assert!(Plane::Both.serves(route));
        let planes =
            [Plane::Data, Plane::Operator].into_iter().filter(|plane| plane.serves(route)).count();
        assert_eq!(planes, if route == Route::Status { 2 } else { 1 }, "{route:?}");
    }
}

#[test]
fn the_openapi_document_lists_these_routes_and_methods() {
    let document: Value = serde_json::from_str(document::OPENAPI).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), Route::ALL.len());
    for route in Route::ALL {
        let operations = paths[route.name()].as_object().unwrap();
        let mut documented: Vec<String> =
            operations.keys().map(|method| method.to_uppercase()).collect();
        let mut allowed: Vec<&str> = route.allow().split(", ").collect();
        documented.sort_unstable();
        allowed.sort_unstable();
        assert_eq!(documented, allowed, "{}", route.name());
    }
}

#[test]
fn the_openapi_document_has_the_version_of_the_product_and_the_limits_of_parameters() {
    let document: Value = serde_json::from_str(document::OPENAPI).unwrap();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let (mut limits, mut acknowledgements) = (0, 0);
    for route in Route::ALL {
        for operation in document["paths"][route.name()].as_object().unwrap().values() {
            assert!(operation["responses"]["403"].is_object(), "{}", route.name());
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let schema = &parameter["schema"];
                match parameter["name"].as_str().unwrap() {
                    "limit" => {
                        limits += 1;
                        assert_eq!(schema["maximum"], u64::MAX);
                    }
                    "acknowledgement" => {
                        acknowledgements += 1;
                        assert_eq!(schema["dependentRequired"]["ack"], serde_json::json!(["from"]));
                        assert_eq!(schema["dependentRequired"]["from"], serde_json::json!(["ack"]));
                    }
                    name => assert!(!["ack", "from"].contains(&name), "one of them alone is 400"),
                }
            }
        }
    }
    assert_eq!((limits, acknowledgements), (4, 4));
}
