-- GET of the status: what a request costs that touches no storage.
-- Arguments: none. Store: any.

wrk.path = "/v0/status"
