-- GET of one key that exists.
-- Arguments: none. Store: filled.

wrk.path = "/v0/entity?id=000000000000"
